/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Defines functions of newer libraries that the compiler's headers call, made of older ones:
 *        the module runs where libstdc++ is that of GCC 8 (GLIBCXX_3.4.24) and glibc is 2.28.
 *
 * The linker takes these definitions for the whole module, and exports none of them. libstdc++
 * itself stays shared with XGBoost: exceptions, strings and streams pass between the two, so a
 * second copy inside the module (-static-libstdc++) would end in crashes.
 */
#include <condition_variable>
#include <ios>
#include <mutex>
#include <new>
#include <sstream>

#if defined(__GLIBCXX__)
extern "C" {
// Bound by name and version, so that no definition of our own is meant.
void CopyExceptionPtr(void* out, void* const* other) asm("gpu_exact_copy_exception_ptr");
void DestroyExceptionPtr(void** self) asm("gpu_exact_destroy_exception_ptr");
asm(".symver gpu_exact_copy_exception_ptr,"
    "_ZNSt15__exception_ptr13exception_ptrC1ERKS0_@CXXABI_1.3.3");
asm(".symver gpu_exact_destroy_exception_ptr,"
    "_ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");

// Of glibc 2.32. shared_ptr asks whether it may count without atomics; no is always right.
char __libc_single_threaded = 0;  // NOLINT

// GCC 11: std::exception_ptr::_M_addref() and _M_release(); before, the constructor and destructor
// that call them were the library's. The reference that the copy holds is not given back.
void AddExceptionRef(void** self) asm("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void AddExceptionRef(void** self) {
  void* copy{nullptr};
  CopyExceptionPtr(&copy, self);
}
void ReleaseException(void** self) asm("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
void ReleaseException(void** self) {
  DestroyExceptionPtr(self);
  *self = nullptr;
}

// GCC 11: thrown by new for sizes that are too large.
[[noreturn]] void ThrowBadArrayNewLength() asm("_ZSt28__throw_bad_array_new_lengthv");
void ThrowBadArrayNewLength() { throw std::bad_array_new_length{}; }

// GCC 9: the constructor without an argument.
using StringStream = std::ostringstream;
void ConstructStringStream(StringStream* self) asm(
    "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void ConstructStringStream(StringStream* self) { new (self) StringStream{std::ios_base::out}; }

// GCC 12: a newer version of the same.
void WaitFor(std::condition_variable* self, std::unique_lock<std::mutex>* lock) asm(
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void WaitFor(std::condition_variable* self, std::unique_lock<std::mutex>* lock) {
  pthread_cond_wait(self->native_handle(), lock->mutex()->native_handle());
}
}
#endif
