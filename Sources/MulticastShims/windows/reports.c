// The system functions that reports use to locate functions and write to descriptors.
//
// Locating a function must acquire no lock. The functions of Windows that find a module acquire the
// loader's lock, which a thread holds while it runs the destructors of a library that is being
// unloaded. If such a destructor waited for a removal, a report that is meant to show this wait
// would itself wait for the loader's lock forever. Therefore this file reads a module's tables from
// the module's headers in memory.

#include "../include/shims.h"

#ifdef SHIMS_WINDOWS

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <limits.h>

// ---- Places --------------------------------------------------------------------------------

// A module in memory, and its tables.
typedef struct image {
  const char *base;
  const IMAGE_DATA_DIRECTORY *tables;
} image;

static const void *at(const image *in, DWORD offset) { return in->base + offset; }

static void copy_name(char *to, const char *from) {
  const size_t length = strnlen(from, SHIMS_NAME_SIZE - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

static bool find_image(uint64_t address, image *found) {
  MEMORY_BASIC_INFORMATION region;
  if (VirtualQuery((const void *)(uintptr_t)address, &region, sizeof region) == 0 ||
      region.State != MEM_COMMIT || region.Type != MEM_IMAGE)
    return false;
  found->base = region.AllocationBase;
  const IMAGE_DOS_HEADER *dos = at(found, 0);
  const IMAGE_NT_HEADERS *headers = at(found, (DWORD)dos->e_lfanew);
  found->tables = headers->OptionalHeader.DataDirectory;
  return dos->e_magic == IMAGE_DOS_SIGNATURE && headers->Signature == IMAGE_NT_SIGNATURE;
}

// Returns the offset at which the function that contains `offset` begins. Searches the unwinding
// table, which is sorted. If the function has no entry in that table, returns `offset` itself.
static DWORD find_begin(const image *in, DWORD offset) {
  const IMAGE_DATA_DIRECTORY *table = &in->tables[IMAGE_DIRECTORY_ENTRY_EXCEPTION];
  const RUNTIME_FUNCTION *entries = at(in, table->VirtualAddress);
  size_t first = 0, count = table->Size / sizeof *entries;
  while (count > 0) {
    const RUNTIME_FUNCTION *middle = &entries[first + count / 2];
    if (offset >= middle->BeginAddress && offset < middle->EndAddress) return middle->BeginAddress;
    if (offset >= middle->EndAddress) {
      first += count / 2 + 1;
      count -= count / 2 + 1;
    } else {
      count /= 2;
    }
  }
  return offset;
}

// Stores the name of the exported function that begins at this offset, if there is one.
static void find_symbol(const image *in, const IMAGE_EXPORT_DIRECTORY *exports, DWORD begin,
                        shims_place *place) {
  const DWORD *functions = at(in, exports->AddressOfFunctions);
  const DWORD *names = at(in, exports->AddressOfNames);
  const WORD *indices = at(in, exports->AddressOfNameOrdinals);
  for (DWORD i = 0; i < exports->NumberOfNames; ++i) {
    if (functions[indices[i]] != begin) continue;
    copy_name(place->symbol, at(in, names[i]));
    place->offset -= begin;
    return;
  }
}

static bool find_place(uint64_t address, shims_place *place) {
  image found;
  place->module[0] = place->symbol[0] = '\0';
  if (!find_image(address, &found)) return false;
  place->offset = address - (uintptr_t)found.base;
  const DWORD table = found.tables[IMAGE_DIRECTORY_ENTRY_EXPORT].VirtualAddress;
  if (table == 0) {  // most programs export nothing, and libraries contain their name
    copy_name(place->module, "program");
    return true;
  }
  const IMAGE_EXPORT_DIRECTORY *exports = at(&found, table);
  copy_name(place->module, at(&found, exports->Name));
  find_symbol(&found, exports, find_begin(&found, (DWORD)place->offset), place);
  return true;
}

// If another thread unloads the module while this thread is reading its headers, the read raises an
// exception. __try is guaranteed to catch only exceptions in called functions, so find_place() must
// not be inlined.
bool shims_locate(uint64_t address, shims_place *place) {
  bool (*volatile find)(uint64_t, shims_place *) = find_place;
  __try {
    return find(address, place);
  } __except (EXCEPTION_EXECUTE_HANDLER) {
    return false;
  }
}

void shims_locate_none_in_child(void) {}

// ---- Writing -------------------------------------------------------------------------------

// Each C library has its own descriptors, and a process may contain several C libraries. Only the
// descriptors of standard output and standard error are the same in all C libraries.
long shims_write_once(int descriptor, const void *text, size_t size) {
  const DWORD error = GetLastError();
  const DWORD most = size < LONG_MAX ? (DWORD)size : LONG_MAX;
  DWORD written = 0;
  bool ok = descriptor == 1 || descriptor == 2;
  ok = ok && WriteFile(GetStdHandle(descriptor == 1 ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE), text,
                       most, &written, NULL);
  SetLastError(error);
  if (ok) return (long)written;
  errno = EBADF;
  return -1;
}

#endif
