/* The names of the locks beneath a prefix. */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "say.h"

static void names_drop_all(struct names *names) {
    while (names->count > 0)
        free(names->all[--names->count].bytes);
}

void names_free(struct names *names) {
    names_drop_all(names);
    free(names->all);
    free(names->prefix);
    names->all = NULL;
    names->prefix = NULL;
    names->room = 0;
}

evlock_string names_at(const struct names *names, size_t index) {
    const struct name *name = &names->all[index];
    return (evlock_string){name->bytes + names->skipped, name->length - names->skipped};
}

static int names_compare(const void *a, const void *b) {
    const struct name *one = a, *other = b;
    int order = memcmp(one->bytes, other->bytes, one->length < other->length ? one->length : other->length);
    return order ? order : (one->length > other->length) - (one->length < other->length);
}

/* What a scan or several servers report twice. */
static void names_sort(struct names *names) {
    size_t kept = 0;
    if (names->count > 0)
        qsort(names->all, names->count, sizeof *names->all, names_compare);
    for (size_t i = 0; i < names->count; i++) {
        if (kept > 0 && names_compare(&names->all[kept - 1], &names->all[i]) == 0)
            free(names->all[i].bytes);
        else
            names->all[kept++] = names->all[i];
    }
    names->count = kept;
}

static bool names_add(struct names *names, const evlock_string *name) {
    if (name->len <= names->skipped)
        return true; /* the prefix itself, which is no name behind it */
    if (names->count == names->room) {
        size_t room = names->room ? 2 * names->room : 64;
        struct name *all = realloc(names->all, room * sizeof *all);
        if (!all)
            return false;
        names->all = all;
        names->room = room;
    }
    char *copy = malloc(name->len + 1);
    if (!copy)
        return false;
    memcpy(copy, name->data, name->len + 1);
    names->all[names->count++] = (struct name){copy, name->len};
    return true;
}

static int names_ask(struct names *names, const evlock_cursor *from);

static void names_on_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    struct names *names = arg;
    int exit = 0;
    (void)client;
    if (names->session->ending)
        return;
    if (status != EVLOCK_OK && names->failed) {
        names->failed(status, names->arg);
        return;
    }
    if (status != EVLOCK_OK)
        exit = say_status("cannot list the locks", status);
    for (size_t i = 0; page && !exit && i < page->count; i++) {
        if (!names_add(names, &page->names[i]))
            exit = say_status("cannot list the locks", EVLOCK_ENOMEM);
    }
    if (!exit && page->more)
        exit = names_ask(names, &page->next);
    if (exit) {
        session_end(names->session, exit);
    } else if (!page->more) {
        names_sort(names);
        names->cb(names, names->arg);
    }
}

static int names_ask(struct names *names, const evlock_cursor *from) {
    int status = evlock_client_list(names->session->client, names->prefix, EVLOCK_CSTRING, from, names_on_page, names);
    return status == EVLOCK_OK ? 0 : say_status("cannot list the locks", status);
}

int names_gather(struct names *names, const char *prefix) {
    const char *before = names->session->options->prefix ? names->session->options->prefix : "";
    names_free(names);
    names->skipped = strlen(before);
    names->prefix = malloc(strlen(before) + (prefix ? strlen(prefix) : 0) + 1);
    if (!names->prefix)
        return say_status("cannot list the locks", EVLOCK_ENOMEM);
    strcat(strcpy(names->prefix, before), prefix ? prefix : "");
    return names_ask(names, NULL);
}
