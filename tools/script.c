/* What the subcommands for scripts share. */
#include <signal.h>
#include <string.h>

#include "exits.h"
#include "lookup.h"
#include "say.h"
#include "script.h"

static void script_on_signal(int number, void *arg) {
    struct script *script = arg;
    session_end(&script->session, EXIT_SIGNAL + number);
}

static void script_on_again(evutil_socket_t fd, short what, void *arg) {
    struct script *script = arg;
    (void)fd, (void)what;
    script_leave(script, script->exit, script->left);
}

int script_open(struct script *script, const struct options *options, const char *name, const evlock_options *wanted) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, 0};
    *script = (struct script){.name = name};
    int exit = session_open(&script->session, options);
    if (exit)
        return exit;
    script->again = event_new(script->session.base, -1, 0, script_on_again, script);
    if (!script->again || signals_catch(&script->signals, script->session.base, numbers, script_on_signal, script) != 0)
        return say_error(EXIT_TROUBLE, "the system refuses to wait for signals");
    return session_lock(&script->session, name, wanted, &script->lock);
}

/* --- Adopting ----------------------------------------------------------------------------------------------------- */

static void script_on_adopted(evlock *lock, int status, void *arg) {
    struct script *script = arg;
    (void)lock;
    if (script->session.ending)
        return;
    if (status == EVLOCK_OK)
        script->adopted(script);
    else if (status == EVLOCK_ENOTOWNED)
        session_end(&script->session, say_error(EXIT_NOT_HAD, "%s: that token does not hold it", script->name));
    else
        session_end(&script->session, say_status(script->name, status));
}

static int script_adopt(struct script *script, const struct token *token, void (*cb)(struct script *script)) {
    script->adopted = cb;
    int status = evlock_adopt(script->lock, token->bytes, token->length, script_on_adopted, script);
    return status == EVLOCK_OK ? 0 : say_status(script->name, status);
}

/* --- Leaving ------------------------------------------------------------------------------------------------------ */

/* While an unanswered command could change the lease, it cannot be left. */
void script_leave(struct script *script, int exit, void (*left)(struct script *script)) {
    static const struct timeval soon = {.tv_usec = 10000};
    char token[EVLOCK_TOKEN_MAX];
    size_t length;
    if (script->session.ending)
        return;
    script->exit = exit;
    script->left = left;
    int status = evlock_export(script->lock, token, sizeof token, &length);
    explicit_bzero(token, sizeof token);
    if (status == EVLOCK_EALREADY && event_add(script->again, &soon) == 0)
        return;
    if (status == EVLOCK_OK && left)
        left(script);
    if (status == EVLOCK_ELOST || status == EVLOCK_ENOTHELD)
        exit = say_error(EXIT_LOST, "lost %s: %s", script->name, evlock_strerror(status));
    else if (status != EVLOCK_OK)
        exit = say_status(script->name, status);
    session_end(&script->session, exit);
}

int script_run(struct script *script, int exit) {
    if (!script->session.base)
        return exit;
    if (exit)
        session_end(&script->session, exit);
    exit = session_loop(&script->session);
    signals_end(&script->signals);
    session_forget(script->again);
    evlock_free(script->lock);
    session_free(&script->session);
    return exit;
}

int script_run_adopted(const struct options *options, const char *name, void (*cb)(struct script *script)) {
    struct script script;
    struct token token;
    int exit = token_read(&token);
    if (exit)
        return exit;
    evlock_options wanted = lookup_options(options);
    exit = script_open(&script, options, name, &wanted);
    if (!exit)
        exit = script_adopt(&script, &token, cb);
    return script_run(&script, exit);
}
