/* What the subcommands for scripts share. */
#include <signal.h>

#include "exits.h"
#include "lookup.h"
#include "say.h"
#include "script.h"

static void script_on_signal(int number, void *arg) {
    struct script *script = arg;
    session_end(&script->session, EXIT_SIGNAL + number);
}

int script_open(struct script *script, const struct options *options, const char *name, const evlock_options *wanted) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, 0};
    *script = (struct script){.name = name};
    int exit = session_open(&script->session, options);
    if (exit)
        return exit;
    if ((exit = outlive_open(&script->outlive, &script->session)) != 0)
        return exit;
    if (signals_catch(&script->signals, script->session.base, numbers, script_on_signal, script) != 0)
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

static void script_on_left(void *arg) {
    struct script *script = arg;
    script->left(script);
}

void script_leave(struct script *script, int exit, void (*left)(struct script *script)) {
    script->left = left;
    script->outlive.lock = script->lock;
    script->outlive.name = script->name;
    script->outlive.left = left ? script_on_left : NULL;
    script->outlive.arg = script;
    outlive(&script->outlive, exit);
}

int script_run(struct script *script, int exit) {
    if (!script->session.base)
        return exit;
    if (exit)
        session_end(&script->session, exit);
    exit = session_loop(&script->session);
    signals_end(&script->signals);
    outlive_close(&script->outlive);
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
