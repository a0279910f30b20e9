/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of elf_symbols.h.
 */
#include "elf_symbols.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace gpu_exact {
namespace {
class ElfFile {
 public:
  explicit ElfFile(std::string const& path) : path_{path}, file_{path, std::ios::binary} {
    if (!file_) {
      throw std::runtime_error{path_ + " cannot be opened to read its symbol table."};
    }
    file_.seekg(0, std::ios::end);
    size_ = static_cast<std::uint64_t>(file_.tellg());
    auto header = Read<ElfW(Ehdr)>(0, 1).front();
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_shentsize != sizeof(ElfW(Shdr))) {
      throw std::runtime_error{path_ + " is not an ELF file of this machine."};
    }
    sections_ = Read<ElfW(Shdr)>(header.e_shoff, header.e_shnum);
  }

  [[nodiscard]] ElfW(Shdr) const& SymbolTable() const {
    auto it = std::find_if(sections_.cbegin(), sections_.cend(),
                           [](auto const& section) { return section.sh_type == SHT_SYMTAB; });
    if (it == sections_.cend() || it->sh_link >= sections_.size()) {
      throw std::runtime_error{path_ + " has no symbol table, it was stripped."};
    }
    return *it;
  }

  [[nodiscard]] std::vector<ElfW(Sym)> Symbols() {
    auto const& table = SymbolTable();
    return Read<ElfW(Sym)>(table.sh_offset, table.sh_size / sizeof(ElfW(Sym)));
  }

  /** @brief The names that Symbols() points into, ending in a zero byte. */
  [[nodiscard]] std::vector<char> Names() {
    auto const& section = sections_[SymbolTable().sh_link];
    auto names = Read<char>(section.sh_offset, section.sh_size);
    names.push_back('\0');
    return names;
  }

 private:
  template <typename T>
  std::vector<T> Read(std::uint64_t offset, std::uint64_t n) {
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

  std::string path_;
  std::ifstream file_;
  std::uint64_t size_{0};
  std::vector<ElfW(Shdr)> sections_;
};
}  // namespace

std::vector<std::uintptr_t> ReadFunctionAddresses(std::string const& path,
                                                  std::vector<std::string> const& names) {
  std::unordered_map<std::string_view, std::size_t> wanted;
  for (std::size_t i = 0; i < names.size(); ++i) {
    wanted.emplace(names[i], i);
  }
  ElfFile file{path};
  auto const texts = file.Names();
  std::vector<std::uintptr_t> addresses(names.size(), 0);
  for (auto const& symbol : file.Symbols()) {
    bool is_function = (symbol.st_info & 0xf) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
    if (!is_function || symbol.st_name >= texts.size()) {
      continue;
    }
    auto it = wanted.find(texts.data() + symbol.st_name);
    if (it != wanted.cend()) {
      addresses[it->second] = symbol.st_value;
    }
  }
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
