/*
 * evlock top: a table of the locks that are held. On a terminal it is drawn again and again; else it is written once.
 * It owns the terminal's settings while it runs, and gives them back.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"
#include "duration.h"
#include "exits.h"
#include "lookup.h"
#include "names.h"
#include "plain.h"
#include "say.h"
#include "signals.h"

static int64_t top_every_ms = 1000;

enum {
    TOP_FURNITURE = 3,      /* lines of a screen that are no row */
    TOP_OTHER_COLUMNS = 24, /* what is left of a lease, and the waiters */
    TOP_LEAST_COLUMNS = 40, /* of a terminal that is too narrow for anything */
};

struct top;

struct row {
    struct top *top;
    evlock *lock;
    evlock_string name;
    struct lookup lookup;
};

struct top {
    struct session session;
    struct signals signals;
    struct names names;
    struct event *timer, *keys;
    const char *prefix;
    struct row *rows;
    size_t count, unanswered;
    int trouble;  /* why the last look failed; 0: it did not */
    bool live;    /* drawn again and again */
    bool set;     /* the terminal has settings of ours */
    bool looking; /* answers are awaited */
    struct termios before;
};

/* --- The terminal ------------------------------------------------------------------------------------------------- */

static void top_enter(struct top *top) {
    struct termios settings;
    if (!top->live || top->set)
        return;
    fputs("\033[?25l\033[H\033[2J", stdout);
    fflush(stdout);
    if (tcgetattr(STDIN_FILENO, &top->before) != 0)
        return;
    settings = top->before;
    settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    top->set = tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) == 0;
}

static void top_leave(struct top *top) {
    if (!top->live)
        return;
    if (top->set)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &top->before);
    top->set = false;
    fputs("\033[?25h", stdout);
    fflush(stdout);
}

static struct winsize top_size(void) {
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct winsize found;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) == 0 && found.ws_row > TOP_FURNITURE && found.ws_col > 0)
        size = found;
    if (size.ws_col < TOP_LEAST_COLUMNS)
        size.ws_col = TOP_LEAST_COLUMNS;
    return size;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static int top_widest(int a, int b) {
    return a > b ? a : b;
}

/* A line's end; on a screen, what stood behind it before is taken away. */
static void top_end_line(const struct top *top, FILE *out) {
    fputs(top->live ? "\033[K\n" : "\n", out);
}

static void top_write_row(const struct top *top, FILE *out, const struct row *row, int name_width, int holder_width) {
    const struct lookup *lookup = &row->lookup;
    char remaining[32];
    plain_print(out, row->name.data, row->name.len, name_width);
    fputs("  ", out);
    plain_print(out, lookup->holder, lookup->holder_length, holder_width);
    fprintf(out, "  %9s  ", lookup_remaining(lookup, remaining, sizeof remaining));
    if (lookup->counted)
        fprintf(out, "%7" PRId64, lookup->waiters);
    else
        fprintf(out, "%7s", "-");
    top_end_line(top, out);
}

static void top_write(const struct top *top, FILE *out) {
    int name_width = (int)strlen("NAME"), holder_width = (int)strlen("HOLDER");
    for (size_t i = 0; i < top->count; i++) {
        const struct row *row = &top->rows[i];
        name_width = top_widest(name_width, plain_width(row->name.data, row->name.len));
        holder_width = top_widest(holder_width, plain_width(row->lookup.holder, row->lookup.holder_length));
    }
    if (top->live) {
        int room = top_size().ws_col - TOP_OTHER_COLUMNS;
        holder_width = holder_width < room / 2 ? holder_width : room / 2;
        name_width = name_width < room - holder_width ? name_width : room - holder_width;
    }
    fprintf(out, "%-*s  %-*s  %9s  %7s", name_width, "NAME", holder_width, "HOLDER", "REMAINING", "WAITERS");
    top_end_line(top, out);
    for (size_t i = 0; i < top->count; i++) {
        if (top->rows[i].lookup.locked)
            top_write_row(top, out, &top->rows[i], name_width, holder_width);
    }
}

static void top_write_json(const struct top *top) {
    struct json json = {.out = stdout};
    json_open(&json, NULL, '[');
    for (size_t i = 0; i < top->count; i++) {
        const struct row *row = &top->rows[i];
        if (!row->lookup.locked)
            continue;
        json_open(&json, NULL, '{');
        json_bytes(&json, "name", row->name.data, row->name.len);
        lookup_json(&row->lookup, &json);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_end(&json);
}

/* In one write, so that the screen does not flicker. */
static void top_draw(const struct top *top) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return;
    fprintf(out, "\033[H%zu lock%s", top->names.count, top->names.count == 1 ? "" : "s");
    if (top->count < top->names.count)
        fprintf(out, ", of which these are %zu", top->count);
    if (top->trouble)
        fprintf(out, "; %s", evlock_strerror(top->trouble));
    fputs("; q ends this", out);
    top_end_line(top, out);
    top_write(top, out);
    fputs("\033[J", out);
    fclose(out);
    fwrite(text, 1, length, stdout);
    fflush(stdout);
    free(text);
}

/* --- Looking ------------------------------------------------------------------------------------------------------ */

static void top_drop_rows(struct top *top) {
    for (size_t i = 0; i < top->count; i++)
        evlock_free(top->rows[i].lock);
    free(top->rows);
    top->rows = NULL;
    top->count = 0;
}

static void top_rest(struct top *top) {
    struct timeval span = duration_span(top_every_ms);
    top->looking = false;
    if (event_add(top->timer, &span) != 0)
        session_end(&top->session, say_error(EXIT_TROUBLE, "the system has no timer to give"));
}

static void top_show(struct top *top) {
    if (top->live) {
        top_draw(top);
        top_rest(top);
        return;
    }
    if (top->session.options->json)
        top_write_json(top);
    else
        top_write(top, stdout);
    session_end(&top->session, EXIT_OK);
}

static void top_fail(int status, void *arg) {
    struct top *top = arg;
    if (!top->live || !lookup_is_passing(status)) {
        session_end(&top->session, say_status("cannot look at the locks", status));
        return;
    }
    top->trouble = status;
    top_show(top);
}

static void top_on_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct row *row = arg;
    struct top *top = row->top;
    if (!lock || top->session.ending)
        return;
    if (status == EVLOCK_OK)
        lookup_keep(&row->lookup, top->session.options, answer);
    else if (status != EVLOCK_EWRONGTYPE) /* what is no lock by now */
        top->trouble = status;
    if (--top->unanswered > 0)
        return;
    if (top->trouble && (!top->live || !lookup_is_passing(top->trouble)))
        session_end(&top->session,
                    say_error(EXIT_TROUBLE, "cannot look at the locks: %s", evlock_strerror(top->trouble)));
    else
        top_show(top);
}

static int top_ask(struct row *row, const evlock_options *wanted) {
    const struct session *session = &row->top->session;
    int status = evlock_new(&row->lock, session->client, row->name.data, row->name.len, wanted);
    if (status == EVLOCK_OK)
        status = evlock_query(row->lock, lookup_parts(session->options), top_on_answer, row);
    if (status == EVLOCK_OK)
        row->top->unanswered++;
    return status == EVLOCK_OK ? 0 : say_status("cannot look at the locks", status);
}

/* As many as can be shown. */
static void top_on_names(struct names *names, void *arg) {
    struct top *top = arg;
    size_t room = (size_t)top_size().ws_row - TOP_FURNITURE;
    evlock_options wanted = lookup_options(top->session.options);
    int exit = 0;
    top->trouble = 0;
    top->unanswered = 0;
    top->rows = calloc(names->count + 1, sizeof *top->rows);
    if (!top->rows)
        exit = say_status("cannot look at the locks", EVLOCK_ENOMEM);
    while (!exit && top->count < names->count && (!top->live || top->count < room)) {
        struct row *row = &top->rows[top->count];
        *row = (struct row){.top = top, .name = names_at(names, top->count)};
        top->count++;
        exit = top_ask(row, &wanted);
    }
    if (exit)
        session_end(&top->session, exit);
    else if (top->count == 0)
        top_show(top);
}

static void top_look(struct top *top) {
    if (top->looking)
        return;
    top->looking = true;
    event_del(top->timer);
    top_drop_rows(top);
    int exit = names_gather(&top->names, top->prefix);
    if (exit)
        session_end(&top->session, exit);
}

static void top_on_timer(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    top_look(arg);
}

/* --- What people do ----------------------------------------------------------------------------------------------- */

static void top_on_key(evutil_socket_t fd, short what, void *arg) {
    struct top *top = arg;
    char keys[32];
    ssize_t got = read(fd, keys, sizeof keys);
    (void)what;
    if (got <= 0)
        event_del(top->keys);
    else if (memchr(keys, 'q', (size_t)got))
        session_end(&top->session, EXIT_OK);
}

static void top_on_signal(int number, void *arg) {
    struct top *top = arg;
    if (number == SIGTSTP) {
        top_leave(top);
        raise(SIGSTOP);
        top_enter(top);
        top_look(top);
    } else if (number == SIGWINCH) {
        top_look(top);
    } else {
        session_end(&top->session, number == SIGINT ? EXIT_OK : EXIT_SIGNAL + number);
    }
}

static int top_start(struct top *top) {
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, 0};
    struct event_base *base = top->session.base;
    top->timer = event_new(base, -1, 0, top_on_timer, top);
    bool ready = top->timer != NULL;
    if (top->live)
        ready = ready && signals_catch(&top->signals, base, ends, top_on_signal, top) == 0;
    if (top->live && isatty(STDIN_FILENO)) {
        top->keys = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, top_on_key, top);
        ready = ready && top->keys && event_add(top->keys, NULL) == 0;
    }
    if (!ready)
        return say_error(EXIT_TROUBLE, "the system refuses to wait for keys and signals");
    top_look(top);
    return 0;
}

static int top_run(const struct options *options, int count, char **operands) {
    struct top top = {.prefix = count > 0 ? operands[0] : NULL};
    int exit = session_open(&top.session, options);
    if (exit)
        return exit;
    top.live = !options->json && isatty(STDOUT_FILENO);
    top.names = (struct names){.session = &top.session, .cb = top_on_names, .failed = top_fail, .arg = &top};
    top_enter(&top);
    if ((exit = top_start(&top)) != 0)
        session_end(&top.session, exit);
    exit = session_loop(&top.session);
    top_leave(&top);
    top_drop_rows(&top);
    names_free(&top.names);
    signals_end(&top.signals);
    session_forget(top.timer);
    session_forget(top.keys);
    session_free(&top.session);
    return exit;
}

static const struct option_row top_options[] = {
    {"every", 0, OPTION_DURATION, &top_every_ms, "TIME", "how often a terminal is drawn; default 1s", 100, INT32_MAX},
    {0},
};

const struct command top_command = {
    .name = "top",
    .purpose = "Show a table of the locks that are held.",
    .usage = "[OPTION...] [PREFIX]",
    .details =
        "On a terminal, the table is drawn again and again, until q or ctrl-C. Elsewhere, and with --json, it is\n"
        "written once. Remaining is what the server would wait for the holder, who may renew.\n",
    .groups = OPTIONS_SERVER,
    .own = top_options,
    .least = 0,
    .most = 1,
    .run = top_run,
};
