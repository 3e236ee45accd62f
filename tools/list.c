/* evlock list: prints the names of the locks that are held. */
#include <stdio.h>

#include "command.h"
#include "exits.h"
#include "json.h"
#include "names.h"
#include "plain.h"

static void list_on_names(struct names *names, void *arg) {
    struct session *session = arg;
    struct json json = {.out = stdout};
    if (session->options->json)
        json_open(&json, NULL, '[');
    for (size_t i = 0; i < names->count; i++) {
        evlock_string name = names_at(names, i);
        if (session->options->json) {
            json_bytes(&json, NULL, name.data, name.len);
            continue;
        }
        plain_print(stdout, name.data, name.len, 0);
        putchar('\n');
    }
    if (session->options->json) {
        json_close(&json, ']');
        json_end(&json);
    }
    session_end(session, EXIT_OK);
}

static int list_run(const struct options *options, int count, char **operands) {
    struct session session;
    struct names names = {.session = &session, .cb = list_on_names, .arg = &session};
    int exit = session_open(&session, options);
    if (exit)
        return exit;
    exit = names_gather(&names, count > 0 ? operands[0] : NULL);
    if (exit)
        session_end(&session, exit);
    exit = session_run(&session);
    names_free(&names);
    return exit;
}

const struct command list_command = {
    .name = "list",
    .purpose = "Print the names of the locks that are held.",
    .usage = "[OPTION...] [PREFIX]",
    .details = "One name a line, sorted. Control characters and backslashes are written as \\xXX. The server looks\n"
               "through all of its keys, some at a time. Other programs' strings of that name are printed, too.\n",
    .groups = OPTIONS_SERVER,
    .least = 0,
    .most = 1,
    .run = list_run,
};
