/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements elf_symbols.h.
 */
#include "load/elf_symbols.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace gpu_exact {
namespace {
/** @brief Find the build id in a segment of notes; empty where it has none. */
std::string BuildIdIn(char const* notes, std::size_t n_bytes, std::size_t alignment) {
  auto const padded = [&](std::size_t n) { return (n + alignment - 1) / alignment * alignment; };
  ElfW(Nhdr) note{};
  while (n_bytes >= sizeof(note)) {
    std::memcpy(&note, notes, sizeof(note));
    auto const at = padded(sizeof(note) + std::size_t{note.n_namesz});
    auto const end = padded(at + std::size_t{note.n_descsz});
    if (end > n_bytes) {
      break;
    }
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
        std::memcmp(notes + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
      return {notes + at, note.n_descsz};
    }
    notes += end;
    n_bytes -= end;
  }
  return "";
}

std::size_t AlignmentOf(ElfW(Phdr) const& notes) { return notes.p_align == 8 ? 8 : 4; }

std::string BuildIdOf(link_map const& object) {
  struct Search {
    link_map const& object;
    std::string found;
  } search{object, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* search = static_cast<Search*>(data);
        auto const* begin = info->dlpi_phdr;
        auto const* end = begin + info->dlpi_phnum;
        auto const is_it = [&](auto const& segment) {
          return segment.p_type == PT_DYNAMIC &&
                 info->dlpi_addr + segment.p_vaddr ==
                     reinterpret_cast<std::uintptr_t>(search->object.l_ld);
        };
        if (std::none_of(begin, end, is_it)) {
          return 0;
        }
        std::for_each(begin, end, [&](auto const& segment) {
          if (segment.p_type == PT_NOTE && search->found.empty()) {
            search->found =
                BuildIdIn(reinterpret_cast<char const*>(info->dlpi_addr + segment.p_vaddr),
                          segment.p_memsz, AlignmentOf(segment));
          }
        });
        return 1;
      },
      &search);
  return search.found;
}
}  // namespace

ElfFile::ElfFile(std::string const& path) : path_{path}, file_{path, std::ios::binary} {
  if (!file_) {
    throw std::runtime_error{path_ + " cannot be opened to read its symbol table."};
  }
  file_.seekg(0, std::ios::end);
  size_ = static_cast<std::uint64_t>(file_.tellg());
  header_ = this->Read<ElfW(Ehdr)>(0, 1).front();
  if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
      header_.e_shentsize != sizeof(ElfW(Shdr)) || header_.e_phentsize != sizeof(ElfW(Phdr))) {
    throw std::runtime_error{path_ + " is not an ELF file of this machine."};
  }
  sections_ = this->Read<ElfW(Shdr)>(header_.e_shoff, header_.e_shnum);
}

template <typename T>
std::vector<T> ElfFile::Read(std::uint64_t offset, std::uint64_t n) {
  if (offset > size_ || n > (size_ - offset) / sizeof(T)) {
    throw std::runtime_error{path_ + " is not a whole ELF file."};
  }
  std::vector<T> out(n);
  file_.seekg(static_cast<std::streamoff>(offset));
  file_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(n * sizeof(T)));
  if (!file_) {
    throw std::runtime_error{path_ + " cannot be read."};
  }
  return out;
}

ElfW(Shdr) const* ElfFile::FindTable(decltype(ElfW(Shdr)::sh_type) type) const {
  auto it = std::find_if(sections_.cbegin(), sections_.cend(),
                         [&](auto const& section) { return section.sh_type == type; });
  return it == sections_.cend() || it->sh_link >= sections_.size() ? nullptr : &*it;
}

template <typename FnT>
void ElfFile::ForEachFunction(ElfW(Shdr) const& table, FnT&& fn) {
  auto const& section = sections_[table.sh_link];
  auto names = this->Read<char>(section.sh_offset, section.sh_size);
  names.push_back('\0');
  auto const n = table.sh_size / sizeof(ElfW(Sym));
  for (auto const& symbol : this->Read<ElfW(Sym)>(table.sh_offset, n)) {
    bool is_function = (symbol.st_info & 0xf) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
    if (is_function && symbol.st_name < names.size()) {
      fn(symbol, names.data() + symbol.st_name);
    }
  }
}

std::string ElfFile::BuildId() {
  for (auto const& segment : this->Read<ElfW(Phdr)>(header_.e_phoff, header_.e_phnum)) {
    if (segment.p_type == PT_NOTE) {
      auto const notes = this->Read<char>(segment.p_offset, segment.p_filesz);
      if (auto id = BuildIdIn(notes.data(), notes.size(), AlignmentOf(segment)); !id.empty()) {
        return id;
      }
    }
  }
  return "";
}

bool ElfFile::IsThatOf(void* handle, link_map const& object) {
  auto const own = this->BuildId();
  auto const loaded = BuildIdOf(object);
  if (!own.empty() || !loaded.empty()) {
    return own == loaded;
  }
  bool same{true};
  if (auto const* exported = this->FindTable(SHT_DYNSYM); exported != nullptr) {
    this->ForEachFunction(*exported, [&](auto const& symbol, char const* name) {
      // A weak one of another object may stand for it.
      same = same && (symbol.st_info >> 4 != STB_GLOBAL ||
                      reinterpret_cast<std::uintptr_t>(dlsym(handle, name)) ==
                          object.l_addr + symbol.st_value);
    });
  }
  return same;
}

std::vector<std::uintptr_t> ElfFile::FunctionAddresses(std::vector<std::string> const& names) {
  std::unordered_map<std::string_view, std::size_t> wanted;
  for (std::size_t i = 0; i < names.size(); ++i) {
    wanted.emplace(names[i], i);
  }
  auto const* table = this->FindTable(SHT_SYMTAB);
  if (table == nullptr) {
    throw std::runtime_error{path_ + " has no symbol table, it was stripped."};
  }
  std::vector<std::uintptr_t> addresses(names.size(), 0);
  this->ForEachFunction(*table, [&](auto const& symbol, char const* name) {
    if (auto it = wanted.find(name); it != wanted.cend()) {
      addresses[it->second] = symbol.st_value;
    }
  });
  return addresses;
}

void* CalledFunction(void* handle, link_map const& object, char const* name) {
  struct Table {
    ElfW(Rela) const* first;
    std::size_t bytes;
  };
  ElfW(Sym) const* symbols{nullptr};
  char const* names{nullptr};
  Table of_calls{nullptr, 0};
  Table of_addresses{nullptr, 0};
  for (ElfW(Dyn) const* d = object.l_ld; d->d_tag != DT_NULL; ++d) {
    auto const address = reinterpret_cast<void const*>(d->d_un.d_ptr);
    switch (d->d_tag) {
      case DT_SYMTAB:
        symbols = static_cast<ElfW(Sym) const*>(address);
        break;
      case DT_STRTAB:
        names = static_cast<char const*>(address);
        break;
      case DT_JMPREL:
        of_calls.first = static_cast<ElfW(Rela) const*>(address);
        break;
      case DT_PLTRELSZ:
        of_calls.bytes = d->d_un.d_val;
        break;
      case DT_RELA:
        of_addresses.first = static_cast<ElfW(Rela) const*>(address);
        break;
      case DT_RELASZ:
        of_addresses.bytes = d->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (symbols == nullptr || names == nullptr) {
    return nullptr;
  }
  for (Table const& table : {of_calls, of_addresses}) {
    for (std::size_t i = 0; i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      ElfW(Sym) const& symbol = symbols[ELF64_R_SYM(table.first[i].r_info)];
      if (symbol.st_shndx != SHN_UNDEF || std::strcmp(names + symbol.st_name, name) != 0) {
        continue;
      }
      void* const target = *reinterpret_cast<void**>(object.l_addr + table.first[i].r_offset);
      Dl_info info{};
      if (dladdr(target, &info) != 0 &&
          reinterpret_cast<std::uintptr_t>(info.dli_fbase) != object.l_addr) {
        return target;
      }
      // Bound by the first call, which looks in this order; the caller must not bring one itself.
      void* const of_all = dlsym(RTLD_DEFAULT, name);
      return of_all != nullptr ? of_all : dlsym(handle, name);
    }
  }
  return nullptr;
}
}  // namespace gpu_exact
