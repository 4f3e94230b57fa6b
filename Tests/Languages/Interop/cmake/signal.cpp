#include <cstdio>
#include <multicast.hpp>
#include <string>
#include <string_view>

int main() {
  mcast::signal<void(std::string_view)> greeted;
  std::string greeting = "hello";
  mcast::scoped_registration registration = greeted.add([&](std::string_view name) {
    std::printf("%s, %.*s\n", greeting.c_str(), static_cast<int>(name.size()), name.data());
  });
  greeted("world");
}
