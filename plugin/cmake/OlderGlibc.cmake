# Target gpu_exact_older_glibc: lets a module that is linked on a new system load on an old one.
#
# glibc 2.34 moved the threads, the loader and shared memory into libc.so.6, and gave them new
# versions. A module that is linked there asks for these versions, which glibc 2.28 lacks, although
# nothing in them changed. So the linker is shown libraries as glibc 2.28 had them: names and
# versions without code. Every glibc since then serves them too.
set(_dl GLIBC_2.2.5 dlclose dlerror dlopen dlsym dlvsym dladdr GLIBC_2.3.3 dladdr1 dlinfo
        GLIBC_2.3.4 dlmopen)
set(_rt GLIBC_2.2.5 shm_open shm_unlink)
set(_pthread GLIBC_2.2.5
  pthread_condattr_setpshared pthread_create pthread_detach pthread_getspecific pthread_join
  pthread_key_create pthread_key_delete pthread_kill pthread_mutex_trylock
  pthread_mutexattr_destroy pthread_mutexattr_init pthread_mutexattr_setpshared
  pthread_mutexattr_settype pthread_once pthread_rwlock_destroy pthread_rwlock_init
  pthread_rwlock_rdlock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock
  pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock pthread_rwlock_wrlock
  pthread_rwlockattr_destroy pthread_rwlockattr_init pthread_rwlockattr_setpshared
  pthread_setspecific pthread_spin_destroy pthread_spin_init pthread_spin_lock
  pthread_spin_trylock pthread_spin_unlock sem_destroy sem_init sem_post sem_timedwait sem_trywait
  sem_wait)

# Links a library of these functions, of the version that stands before them, into the target.
function(gpu_exact_add_older_library target soname)
  set(source "")
  set(map "")
  foreach(word IN LISTS ARGN)
    if(word MATCHES "^GLIBC_")
      string(APPEND map "${word} {};\n")
      set(version ${word})
    else()
      string(APPEND source ".global gpu_exact_${word}\n.type gpu_exact_${word}, @function\n"
                           "gpu_exact_${word}:\n.symver gpu_exact_${word}, ${word}@@${version}\n")
    endif()
  endforeach()
  set(name gpu_exact_older_${soname})
  file(CONFIGURE OUTPUT ${name}.map CONTENT "${map}")
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "asm(R\"(${source})\");\n")
  add_library(${name} SHARED "${CMAKE_CURRENT_BINARY_DIR}/${name}.cc")
  set_target_properties(${name} PROPERTIES NO_SONAME TRUE)
  target_link_options(${name} PRIVATE -nostdlib -Wl,-soname,${soname}
    "-Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/${name}.map")
  target_link_libraries(${target} INTERFACE ${name})
endfunction()

add_library(gpu_exact_older_glibc INTERFACE)
gpu_exact_add_older_library(gpu_exact_older_glibc libdl.so.2 ${_dl})
gpu_exact_add_older_library(gpu_exact_older_glibc librt.so.1 ${_rt})
gpu_exact_add_older_library(gpu_exact_older_glibc libpthread.so.0 ${_pthread})
