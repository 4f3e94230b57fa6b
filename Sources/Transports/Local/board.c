#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "board.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

/* Identifies the layout of the board and the entries. */
static const uint64_t magic = 0x336c61636f6c636du; /* "mclocal3" */

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL };

/* The size of the board, rounded up so that the ring begins on a page. */
static size_t board_size(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (sizeof(board) + page - 1) / page * page;
}

static bool map(memory *m, int file, uint64_t ring_size, int protection) {
  const size_t before = board_size(), ring = (size_t)ring_size;
  const int fixed = MAP_SHARED | MAP_FIXED;
  unsigned char *at = mmap(NULL, before + 2 * ring, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  m->board = (board *)(void *)at;
  m->ring = at + before;
  m->ring_size = ring_size;
  if (mmap(at, before + ring, protection, fixed, file, 0) != MAP_FAILED &&
      mmap(at + before + ring, ring, protection, fixed, file, (off_t)before) != MAP_FAILED)
    return true;
  memory_close(m);
  return false;
}

static int create_file(void) {
  int file = memfd_create("multicast-local", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (file < 0 && errno == EINVAL) /* before Linux 6.3 */
    file = memfd_create("multicast-local", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  return file;
}

/* Checks RLIMIT_FSIZE, because creating a file larger than this limit would raise SIGXFSZ. */
static bool may_be_as_large_as(uint64_t size) {
  struct rlimit most;
  return getrlimit(RLIMIT_FSIZE, &most) != 0 || size <= most.rlim_cur;
}

int memory_create(memory *m, uint64_t ring_size) {
  int file, error;
  if (!may_be_as_large_as(board_size() + ring_size)) return -EFBIG;
  file = create_file();
  if (file < 0) return -errno;
  if (ftruncate(file, (off_t)(board_size() + ring_size)) == 0 &&
      map(m, file, ring_size, PROT_READ | PROT_WRITE)) {
    m->board->magic = magic;
    m->board->ring_size = ring_size;
    /* With these seals, no process can shrink the file while others read it, and no process can
     * create another writable mapping. */
    if (fcntl(file, F_ADD_SEALS, SEALS) == 0) return file;
  }
  error = errno;
  memory_close(m);
  close(file);
  return -error;
}

int memory_open(memory *m, int file) {
  const int seals = fcntl(file, F_GET_SEALS);
  struct stat status;
  uint64_t ring_size;
  /* If a peer could shrink the file, reading the missing part would raise SIGBUS. */
  if (seals < 0 || (seals & SEALS) != SEALS) return EINVAL;
  if (fstat(file, &status) != 0) return ENOMEM;
  if (status.st_size < (off_t)board_size()) return EINVAL;
  ring_size = (uint64_t)status.st_size - board_size();
  if (ring_size < RING_LEAST || ring_size > RING_MOST || (ring_size & (ring_size - 1)) != 0)
    return EINVAL;
  if (!map(m, file, ring_size, PROT_READ)) return ENOMEM;
  if (m->board->magic == magic && m->board->ring_size == ring_size) return 0;
  memory_close(m);
  return EINVAL;
}

void memory_close(memory *m) {
  if (m->board != NULL) munmap(m->board, board_size() + 2 * (size_t)m->ring_size);
  m->board = NULL;
}
