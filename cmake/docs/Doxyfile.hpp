# Settings for C++ headers. The functions of a signal are inherited from private base classes, some
# of which document several functions together.
FILE_PATTERNS = *.hpp
FULL_PATH_NAMES = NO
INLINE_INHERITED_MEMB = YES
CLASS_GRAPH = NO
HIDE_UNDOC_MEMBERS = YES
HIDE_UNDOC_CLASSES = YES
HIDE_FRIEND_COMPOUNDS = YES
PREDEFINED = __cplusplus=201703L MULTICAST_HPP_NAMESPACE=mcast
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
