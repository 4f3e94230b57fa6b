// How long does it take to open a library, and what is loaded with it?
//
// Each iteration starts a process that has loaded only libc, and that opens the library like a
// plugin. The file is in the page cache. The figures are in these counters:
//
//   ns           the median time of dlopen(RTLD_NOW)
//   resident_kb  the resident memory that dlopen() adds, whether shared or private
//   private_kb   the private part of this memory, which is the pages that have been written to
//   size_kb      the size of the stripped file
//   needs        the number of other libraries loaded with it, without libc and the loader
//
// The label names the library's direct dependencies. The iteration time is meaningless.

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "question.hpp"

struct library {
  const char *contender, *file;
};
static const library libraries[] = {
    {"libmulticast", LIBMULTICAST},
    {"libsigc++", "libsigc-2.0.so.0"},
    {"GObject signals", "libgobject-2.0.so.0"},
    {"Qt 5 signals", "libQt5Core.so.5"},
    {"liburcu, array", "liburcu-memb.so.8"},
    // libstdc++ represents header-only peers, such as Boost.Signals2, because they need it.
    {"libstdc++", "libstdc++.so.6"},
};

// ---- Queries to the system ----------------------------------------------------------------------

static std::string quoted(const std::string &path) { return "'" + path + "'"; }

/// Returns the output of a command, or an empty string if it fails.
static std::string output_of(const std::string &command) {
  FILE *pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  char part[4096];
  while (size_t size = fread(part, 1, sizeof part, pipe)) output.append(part, size);
  return pclose(pipe) == 0 ? output : "";
}

/// Returns the path at which the loader finds a library, or an empty string.
static std::string path_of(const std::string &file) {
  void *opened = dlopen(file.c_str(), RTLD_LAZY);
  link_map *map = nullptr;
  if (opened == nullptr || dlinfo(opened, RTLD_DI_LINKMAP, &map) != 0) return "";
  return map->l_name;
}

static std::vector<std::string> needed_by(const std::string &path) {
  std::istringstream lines(output_of("readelf -d " + quoted(path)));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const size_t begin = line.find('[') + 1;
    names.push_back(line.substr(begin, line.find(']') - begin));
  }
  return names;
}

/// Collects all of a library's direct and indirect dependencies.
static void collect_needs(const std::string &path, std::set<std::string> &names) {
  for (const std::string &name : needed_by(path)) {
    if (name == "libc.so.6" || name.rfind("ld-linux", 0) == 0) continue;
    if (names.insert(name).second) collect_needs(path_of(name), names);
  }
}

static double stripped_kb(const std::string &path) {
  char copy[] = "/tmp/stripped-XXXXXX";
  const int descriptor = mkstemp(copy);
  if (descriptor < 0) return 0;
  struct stat file {};
  const bool is_done = system(("strip -o " + quoted(copy) + " " + quoted(path)).c_str()) == 0 &&
                       stat(copy, &file) == 0;
  close(descriptor);
  unlink(copy);
  return is_done ? double(file.st_size) / 1024 : 0;
}

// ---- The measurement ----------------------------------------------------------------------------

struct cost {
  long ns, resident_kb, private_kb;
};

static double median(const std::vector<cost> &costs, long cost::*field) {
  std::vector<long> sorted;
  for (const cost &each : costs) sorted.push_back(each.*field);
  std::sort(sorted.begin(), sorted.end());
  return double(sorted[sorted.size() / 2]);
}

static void open(benchmark::State &state, std::string path) {
  const std::string command = quoted(ISOLATION) + " cost " + quoted(path);
  std::vector<cost> costs;
  for (auto _ : state) {
    cost each{};
    const std::string output = output_of(command);
    if (sscanf(output.c_str(), "%ld %ld %ld", &each.ns, &each.resident_kb, &each.private_kb) != 3)
      return state.SkipWithError("the library could not be opened");
    costs.push_back(each);
  }

  std::set<std::string> needs;
  collect_needs(path, needs);
  std::string direct;
  for (const std::string &name : needed_by(path)) direct += (direct.empty() ? "" : " ") + name;
  const double size = stripped_kb(path);
  // Every library needs at least libc, so if no dependency is found, readelf must be missing.
  if (direct.empty() || size == 0) return state.SkipWithError("readelf or strip failed (binutils)");

  state.counters["ns"] = median(costs, &cost::ns);
  state.counters["resident_kb"] = median(costs, &cost::resident_kb);
  state.counters["private_kb"] = median(costs, &cost::private_kb);
  state.counters["size_kb"] = size;
  state.counters["needs"] = double(needs.size());
  state.SetLabel(direct);
}

int main(int argc, char **argv) {
  std::string missing;
  for (const library &each : libraries) {
    const std::string path = path_of(each.file);
    if (path.empty()) {
      missing += (missing.empty() ? "" : "; ") + std::string(each.file);
      continue;
    }
    // Limit the number of iterations, because each takes some milliseconds.
    add_benchmark("open", each.contender, 1, open, path)->Iterations(20);
  }
  if (!missing.empty()) benchmark::AddCustomContext("missing_libraries", missing);
  return run_question(argc, argv);
}
