// The system functions that reports use to locate functions and read thread names.
//
// This file does not use dladdr(), because dladdr() acquires the loader's lock, which a thread
// holds while it runs the destructors of a library that is being closed. If such a destructor
// waited for a removal, a report that is meant to show this wait would hang in dladdr().
// dl_iterate_phdr() acquires another lock, which threads hold only while they change or read the
// list of libraries. In the child of a fork, a thread that no longer exists may hold even that
// lock, so shims_locate() returns false there.

#define _GNU_SOURCE
#include "shims.h"

#ifdef SHIMS_LINUX

#include <link.h>

typedef struct table {
  const ElfW(Sym) * symbols;
  const char *names;
  const uint32_t *hashes;  // DT_GNU_HASH
} table;

static table find_table(const struct dl_phdr_info *module, const ElfW(Dyn) * entry) {
  table found = {NULL, NULL, NULL};
  for (; entry->d_tag != DT_NULL; ++entry) {
    uintptr_t address = entry->d_un.d_ptr;
    // Some loaders do not relocate the addresses in this table.
    if (address < module->dlpi_addr) address += module->dlpi_addr;
    if (entry->d_tag == DT_SYMTAB) found.symbols = (const void *)address;
    if (entry->d_tag == DT_STRTAB) found.names = (const void *)address;
    if (entry->d_tag == DT_GNU_HASH) found.hashes = (const void *)address;
  }
  return found;
}

// The number of symbols is not stored, so find the last symbol, which is at the end of the last
// chain.
static uint32_t count_symbols(const uint32_t *hashes) {
  uint32_t bucket_count = hashes[0], first = hashes[1];
  const uint32_t *buckets = hashes + 4 + hashes[2] * (sizeof(ElfW(Addr)) / sizeof *hashes);
  const uint32_t *chains = buckets + bucket_count;
  uint32_t last = 0;
  for (uint32_t i = 0; i < bucket_count; ++i) {
    if (buckets[i] > last) last = buckets[i];
  }
  if (last < first) return 0;
  while ((chains[last - first] & 1) == 0) ++last;
  return last + 1;
}

static const ElfW(Sym) * find_symbol(const table *in, uintptr_t offset) {
  if (in->symbols == NULL || in->names == NULL || in->hashes == NULL) return NULL;
  for (uint32_t i = count_symbols(in->hashes); i > 0; --i) {
    const ElfW(Sym) *symbol = &in->symbols[i - 1];
    if (symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 0xF) == STT_FUNC &&
        offset - symbol->st_value < symbol->st_size)
      return symbol;
  }
  return NULL;
}

static void copy(char *to, const char *from) {
  size_t length = strnlen(from, SHIMS_NAME_SIZE - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

// Copies the names, because the module may be unloaded as soon as this function has returned.
static int look(struct dl_phdr_info *module, size_t size, void *context) {
  shims_place *place = context;
  uintptr_t offset = (uintptr_t)place->offset - module->dlpi_addr;
  const ElfW(Dyn) *dynamic = NULL;
  bool is_here = false;
  (void)size;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &module->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && offset - part->p_vaddr < part->p_memsz) is_here = true;
    if (part->p_type == PT_DYNAMIC) dynamic = (const void *)(module->dlpi_addr + part->p_vaddr);
  }
  if (!is_here) return 0;
  const char *name = module->dlpi_name;
  for (const char *end = name; *end != '\0'; ++end) {
    if (*end == '/') name = end + 1;
  }
  copy(place->module, *name != '\0' ? name : "program");
  table symbols = {NULL, NULL, NULL};
  if (dynamic != NULL) symbols = find_table(module, dynamic);
  const ElfW(Sym) *symbol = find_symbol(&symbols, offset);
  place->offset = offset;
  if (symbol != NULL) {
    copy(place->symbol, symbols.names + symbol->st_name);
    place->offset -= symbol->st_value;
  }
  return 1;
}

static bool is_child;  // of a fork

void shims_locate_none_in_child(void) { is_child = true; }

bool shims_locate(uint64_t address, shims_place *place) {
  if (is_child) return false;
  place->offset = address;
  place->module[0] = place->symbol[0] = '\0';
  return dl_iterate_phdr(look, place) != 0;
}

// Makes system calls directly, because libc's functions are cancellation points.
void shims_read_thread_name(uint32_t thread, shims_label *name) {
  char path[] = "/proc/self/task/4294967295/comm";
  char *at = path + sizeof "/proc/self/task/" - 1;
  uint32_t unit = 1;
  const int error = errno;
  memset(name, 0, sizeof *name);
  while (thread / unit >= 10) unit *= 10;
  for (; unit > 0; unit /= 10) *at++ = (char)('0' + thread / unit % 10);
  memcpy(at, "/comm", sizeof "/comm");
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    const long size = syscall(SYS_read, file, name->text, sizeof name->text - 1);
    if (size > 0) name->text[size - 1] = '\0';  // in place of the line feed
    syscall(SYS_close, file);
  }
  errno = error;
}

#endif
