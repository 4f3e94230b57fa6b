/* The names that are subscribed, and the list of those that the server has to be told of. */

#include "client.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
  return strcmp(((const known_name *)a)->text, ((const known_name *)b)->text);
}

/* NULL: there is none. */
static known_name *find(const name_tree *tree, const char *text) {
  const known_name wanted = {.text = text};
  known_name *const *found = tfind(&wanted, &tree->root, compare);
  return found == NULL ? NULL : *found;
}

static void change(name_tree *tree, known_name *name) {
  if (name->is_changed) return;
  name->is_changed = true;
  name->next_change = NULL;
  *(tree->first_change == NULL ? &tree->first_change : &tree->last_change->next_change) = name;
  tree->last_change = name;
}

/* NULL: out of memory. */
static known_name *add(name_tree *tree, const char *text) {
  size_t size = strlen(text) + 1;
  known_name *name = calloc(1, sizeof *name + size);
  if (name == NULL) return NULL;
  memcpy(name->bytes, text, size);
  name->text = name->bytes;
  if (tsearch(name, &tree->root, compare) != NULL) return name;
  free(name);
  return NULL;
}

bool names_want(name_tree *tree, const char *text, bool is_wanted) {
  known_name *name = find(tree, text);
  if (name == NULL) {
    if (!is_wanted) return true;
    name = add(tree, text);
  }
  if (name == NULL) return false;
  tree->wanted = tree->wanted + is_wanted - name->is_wanted;
  name->is_wanted = is_wanted;
  change(tree, name);
  return true;
}

known_name *names_take_change(name_tree *tree) {
  known_name *name = tree->first_change;
  if (name == NULL) return NULL;
  tree->first_change = name->next_change;
  name->is_changed = false;
  return name;
}

void names_remove(name_tree *tree, known_name *name) {
  tdelete(name, &tree->root, compare);
  free(name);
}

typedef struct visitor {
  void (*visit)(known_name *name, void *context);
  void *context;
} visitor;

static void visit_node(const void *node, VISIT which, void *context) {
  const visitor *v = context;
  if (which == postorder || which == leaf) v->visit(*(known_name *const *)node, v->context);
}

void names_visit(name_tree *tree, void (*visit)(known_name *name, void *context), void *context) {
  visitor v = {visit, context};
  twalk_r(tree->root, visit_node, &v);
}

static void change_in(known_name *name, void *tree) { change(tree, name); }

void names_change_all(name_tree *tree) { names_visit(tree, change_in, tree); }

void names_free(name_tree *tree) { tdestroy(tree->root, free); }
