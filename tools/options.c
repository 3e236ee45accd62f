/*
 * The options of the command line: the rows of the shared ones, the parser, and the help that is made of the rows.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duration.h"
#include "exits.h"
#include "options.h"
#include "say.h"
#include "signals.h"

enum { OPTIONS_MOST = 64, OPTIONS_FIRST_LONG = 256 };

static char options_holder[92];
static struct options options_values = {
    .password_fd = -1,
    .ttl_ms = 10000,
    .max_ttl_ms = 60000,
    .holder = options_holder,
    .wait_ms = -1,
    .not_had = EXIT_NOT_HAD,
    .end_signal = SIGTERM,
    .kill_after_ms = -1,
};

static const struct option_row options_server[] = {
    {"url", 'u', OPTION_URL, NULL, "URL", "the server; again for each of a quorum (EVLOCK_URL)", 0, 0},
    {"user", 0, OPTION_TEXT, &options_values.user, "NAME", "the user to log in as", 0, 0},
    {"password-file", 0, OPTION_TEXT, &options_values.password_file, "FILE",
     "its first line is the password (EVLOCK_PASSWORD_FILE, EVLOCK_PASSWORD)", 0, 0},
    {"password-fd", 0, OPTION_NUMBER, &options_values.password_fd, "N", "the password comes from descriptor N", 0,
     INT32_MAX},
    {"sentinel-user", 0, OPTION_TEXT, &options_values.sentinel_user, "NAME",
     "the user at the Sentinels, with EVLOCK_SENTINEL_PASSWORD", 0, 0},
    {"failover-wait", 0, OPTION_DURATION, &options_values.failover_wait_ms, "TIME",
     "on one server, or in a cluster: grant nothing so long after a failover, and for --max-ttl", 0, 0},
    {"cacert", 0, OPTION_TEXT, &options_values.cacert, "FILE", "the certificates to trust; else the system's", 0, 0},
    {"cert", 0, OPTION_TEXT, &options_values.cert, "FILE", "the certificate of this client", 0, 0},
    {"key", 0, OPTION_TEXT, &options_values.key, "FILE", "its private key", 0, 0},
    {"sni", 0, OPTION_TEXT, &options_values.sni, "NAME", "the name that the server's certificate must have", 0, 0},
    {"prefix", 0, OPTION_TEXT, &options_values.prefix, "TEXT", "stands before each name, to make the key", 0, 0},
    {"max-ttl", 0, OPTION_DURATION, &options_values.max_ttl_ms, "TIME",
     "of a quorum, or with --failover-wait: the longest ttl; default 60s", 0, 0},
    {"server-wait", 0, OPTION_DURATION, &options_values.server_wait_ms, "TIME",
     "how long to wait for a server that is away at first; default 0", 0, INT64_MAX},
    {"json", 0, OPTION_FLAG, &options_values.json, NULL, "print JSON, where anything is printed", 0, 0},
    {"quiet", 'q', OPTION_FLAG, &options_values.quiet, NULL, "say nothing but errors", 0, 0},
    {"verbose", 'v', OPTION_COUNT, &options_values.verbose, NULL, "say each step; twice: all that the library does", 0,
     0},
    {0},
};

static const struct option_row options_lease[] = {
    {"ttl", 0, OPTION_DURATION, &options_values.ttl_ms, "TIME", "the length of the lease; default 10s", 0, 0},
    {"holder", 0, OPTION_TEXT, &options_values.holder, "TEXT", "who holds it, for others to read; default HOST:PID", 0,
     0},
    {"min-replicas", 0, OPTION_NUMBER, &options_values.min_replicas, "N", "replicas that must have the lock, too", 0,
     INT32_MAX},
    {0},
};

static const struct option_row options_wait[] = {
    {"nonblock", 'n', OPTION_FLAG, &options_values.nonblock, NULL, "do not wait for the lock", 0, 0},
    {"wait", 'w', OPTION_DURATION, &options_values.wait_ms, "TIME", "wait so long at most; default: for ever", 0,
     INT64_MAX},
    {"conflict-exit-code", 'E', OPTION_NUMBER, &options_values.not_had, "N", "the exit status if not had; default 1", 0,
     255},
    {"queue", 0, OPTION_FLAG, &options_values.queue, NULL,
     "wait in line; default on one server without --failover-wait", 0, 0},
    {"poll", 0, OPTION_FLAG, &options_values.poll, NULL, "try again and again; else the default", 0, 0},
    {0},
};

static const struct option_row options_work[] = {
    {"at-most", 0, OPTION_DURATION, &options_values.at_most_ms, "TIME", "end the command after this time", 0, 0},
    {"signal", 's', OPTION_SIGNAL, &options_values.end_signal, "SIGNAL", "ask it to end by this; default TERM", 0, 0},
    {"kill-after", 'k', OPTION_DURATION, &options_values.kill_after_ms, "TIME",
     "kill it so long after that; default 1s, or less for a short --ttl or --at-most", 0, INT64_MAX},
    {"warn-signal", 0, OPTION_SIGNAL, &options_values.warn_signal, "SIGNAL", "sent when the lease is at risk", 0, 0},
    {"fence", 0, OPTION_FLAG, &options_values.fence, NULL, "draw a fence, and give it as EVLOCK_FENCE", 0, 0},
    {"foreground", 0, OPTION_FLAG, &options_values.foreground, NULL, "run it in evlock's own process group", 0, 0},
    {"leave", 0, OPTION_FLAG, &options_values.leave, NULL, "leave alone what it leaves running when it ends", 0, 0},
    {"nested", 0, OPTION_FLAG, &options_values.nested, NULL, "permit a name that is held around this", 0, 0},
    {0},
};

const struct option_row *options_rows(enum options_group group) {
    switch (group) {
    case OPTIONS_SERVER:
        return options_server;
    case OPTIONS_LEASE:
        return options_lease;
    case OPTIONS_WAIT:
        return options_wait;
    case OPTIONS_WORK:
        return options_work;
    default:
        return NULL;
    }
}

const struct options *options_shared(void) {
    return &options_values;
}

/* --- Parsing ------------------------------------------------------------------------------------------------------ */

/* All rows that a subcommand knows, as getopt_long() wants them. */
struct options_known {
    const struct option_row *rows[OPTIONS_MOST];
    struct option longs[OPTIONS_MOST + 2];
    char shorts[2 * OPTIONS_MOST + 4];
    size_t count;
};

static void options_know(struct options_known *known, const struct option_row *rows) {
    for (; rows && rows->name; rows++) {
        char letter[] = {rows->letter, rows->argument ? ':' : '\0', '\0'};
        known->rows[known->count] = rows;
        known->longs[known->count].name = rows->name;
        known->longs[known->count].has_arg = rows->argument ? required_argument : no_argument;
        known->longs[known->count].val = OPTIONS_FIRST_LONG + (int)known->count;
        known->count++;
        if (rows->letter)
            strcat(known->shorts, letter);
    }
}

static const struct option_row *options_row(const struct options_known *known, int found) {
    if (found >= OPTIONS_FIRST_LONG)
        return known->rows[found - OPTIONS_FIRST_LONG];
    for (size_t i = 0; i < known->count; i++) {
        if (known->rows[i]->letter == found)
            return known->rows[i];
    }
    return NULL;
}

/* The arguments of a program are for everyone to read. */
static bool options_tells_password(const char *url) {
    for (const char *at = strstr(url, "://"); at; at = strstr(at, "://")) {
        at += strlen("://");
        const char *host = memchr(at, '@', strcspn(at, "/ "));
        if (host && memchr(at, ':', (size_t)(host - at)))
            return true;
    }
    return false;
}

/* Takes a copy of one URL, or of several with blanks between them. */
static int options_add_urls(const char *text) {
    static const char quorum[] = "quorum:";
    if (strncmp(text, quorum, sizeof quorum - 1) == 0)
        text += sizeof quorum - 1;
    char *copy = strdup(text), *rest = NULL;
    if (!copy)
        return say_status("cannot start", EVLOCK_ENOMEM);
    for (char *url = strtok_r(copy, " ", &rest); url; url = strtok_r(NULL, " ", &rest)) {
        if (options_values.url_count == EVLOCK_NODES_MAX)
            return say_error(EXIT_TROUBLE, "there are more than %d servers", EVLOCK_NODES_MAX);
        options_values.urls[options_values.url_count++] = url;
    }
    return 0;
}

static int options_set_url(const char *text) {
    if (options_tells_password(text))
        return say_error(EXIT_TROUBLE, "a password in --url is for all to read: give it by --password-file, "
                                       "--password-fd or EVLOCK_URL");
    return options_add_urls(text);
}

/* The servers, where no option has named them. A default would be a lock that excludes nobody elsewhere. */
static int options_find_urls(void) {
    const char *text = getenv("EVLOCK_URL");
    int exit = text && options_values.url_count == 0 ? options_add_urls(text) : 0;
    if (exit || options_values.url_count > 0)
        return exit;
    return say_error(EXIT_TROUBLE, "which server? Give --url, or set EVLOCK_URL, as in redis://localhost");
}

static int options_set_number(const struct option_row *row, const char *text) {
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || number < row->least || number > row->most)
        return say_error(EXIT_TROUBLE, "--%s: '%s' is no number from %" PRId64 " to %" PRId64, row->name, text,
                         row->least, row->most);
    *(int64_t *)row->value = number;
    return 0;
}

static int options_set_duration(const struct option_row *row, const char *text) {
    int64_t ms, least = row->most ? row->least : 1, most = row->most ? row->most : INT64_MAX;
    if (!duration_parse(text, &ms))
        return say_error(EXIT_TROUBLE, "--%s: '%s' is no time; write it as 10s, 500ms, 2m or 1h", row->name, text);
    if (ms < least || ms > most)
        return say_error(EXIT_TROUBLE, "--%s: '%s' is too %s", row->name, text, ms < least ? "short" : "long");
    *(int64_t *)row->value = ms;
    return 0;
}

static int options_set(const struct option_row *row, const char *text) {
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)row->value = true;
        return 0;
    case OPTION_COUNT:
        ++*(int *)row->value;
        return 0;
    case OPTION_TEXT:
        *(const char **)row->value = text;
        return 0;
    case OPTION_NUMBER:
        return options_set_number(row, text);
    case OPTION_DURATION:
        return options_set_duration(row, text);
    case OPTION_SIGNAL:
        if ((*(int *)row->value = signals_number(text)) == 0)
            return say_error(EXIT_TROUBLE, "--%s: '%s' is no signal", row->name, text);
        return 0;
    default:
        return options_set_url(text);
    }
}

/* Who holds, unless it is said: the host and this process. */
static void options_name_holder(void) {
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(options_holder, sizeof options_holder, "%s:%ld", host, (long)getpid());
}

int options_check_ttl(const struct options *options, int64_t ttl_ms) {
    bool counts = options->url_count > 1 || options->failover_wait_ms;
    if (!counts || ttl_ms <= options->max_ttl_ms)
        return 0;
    return say_error(EXIT_TROUBLE, "--ttl, %" PRId64 " ms, is longer than --max-ttl, %" PRId64 " ms", ttl_ms,
                     options->max_ttl_ms);
}

/* Of the servers, once they are known. */
static int options_finish_servers(const struct options *options, unsigned groups) {
    int exit = options_find_urls();
    if (exit)
        return exit;
    if (options->failover_wait_ms && options->url_count > 1)
        return say_error(EXIT_TROUBLE, "--failover-wait is for one server or a cluster, and there are several servers");
    if (options->sentinel_user && !getenv("EVLOCK_SENTINEL_PASSWORD"))
        return say_error(EXIT_TROUBLE, "--sentinel-user needs a password: set EVLOCK_SENTINEL_PASSWORD");
    return groups & OPTIONS_LEASE ? options_check_ttl(options, options->ttl_ms) : 0;
}

/* What options together mean, and must not mean. */
static int options_finish(struct options *options, unsigned groups) {
    if (options->queue && options->poll)
        return say_error(EXIT_TROUBLE, "--queue and --poll exclude each other");
    if (options->wait_ms == 0)
        options->nonblock = true;
    if (options->nonblock && options->wait_ms > 0)
        return say_error(EXIT_TROUBLE, "--nonblock and --wait exclude each other");
    if (options->password_file && options->password_fd >= 0)
        return say_error(EXIT_TROUBLE, "--password-file and --password-fd exclude each other");
    say_up_to(options->quiet          ? SAY_ERRORS
              : options->verbose >= 2 ? SAY_ALL
              : options->verbose == 1 ? SAY_STEPS
                                      : SAY_NOTES);
    return groups & OPTIONS_SERVER ? options_finish_servers(options, groups) : 0;
}

int options_parse(unsigned groups, const struct option_row *own, int argc, char **argv, int *ret_first,
                  bool *ret_help) {
    struct options_known known = {.count = 0};
    strcpy(known.shorts, groups & OPTIONS_FIRST ? "+h" : "h");
    options_know(&known, own);
    for (unsigned group = OPTIONS_SERVER; group <= OPTIONS_WORK; group *= 2) {
        if (groups & group)
            options_know(&known, options_rows((enum options_group)group));
    }
    known.longs[known.count] = (struct option){"help", no_argument, NULL, 'h'};
    options_name_holder();

    *ret_help = false;
    optind = 1;
    for (int found; (found = getopt_long(argc, argv, known.shorts, known.longs, NULL)) != -1;) {
        if (found == 'h') {
            *ret_help = true;
            return 0;
        }
        const struct option_row *row = options_row(&known, found);
        int exit = row ? options_set(row, optarg) : say_error(EXIT_TROUBLE, "see %s --help", argv[0]);
        if (exit)
            return exit;
    }
    *ret_first = optind;
    return options_finish(&options_values, groups);
}

/* --- Help --------------------------------------------------------------------------------------------------------- */

static void options_help_rows(const char *title, const struct option_row *rows) {
    printf("\n%s\n", title);
    for (; rows->name; rows++) {
        char name[64], letter[] = {'-', rows->letter, ',', '\0'};
        snprintf(name, sizeof name, "%s --%s%s%s", rows->letter ? letter : "   ", rows->name, rows->argument ? " " : "",
                 rows->argument ? rows->argument : "");
        printf("  %-28s %s\n", name, rows->help);
    }
}

void options_help(unsigned groups, const struct option_row *own) {
    if (own)
        options_help_rows("Options:", own);
    if (groups & OPTIONS_WORK)
        options_help_rows("The command:", options_work);
    if (groups & OPTIONS_LEASE)
        options_help_rows("The lease:", options_lease);
    if (groups & OPTIONS_WAIT)
        options_help_rows("Waiting for the lock:", options_wait);
    if (groups & OPTIONS_SERVER)
        options_help_rows("The server, and what evlock prints:", options_server);
}

/* --- What the library wants --------------------------------------------------------------------------------------- */

evlock_options options_lock(const struct options *options) {
    bool single = options->url_count <= 1 && !options->failover_wait_ms;
    bool queue = options->queue || (!options->poll && single);
    return (evlock_options){
        .size = sizeof(evlock_options),
        .ttl_ms = options->ttl_ms,
        .prefix = options->prefix,
        .holder = options->holder,
        .min_replicas = options->min_replicas,
        .wait = queue ? EVLOCK_WAIT_QUEUE : EVLOCK_WAIT_POLL,
        .max_wait_ms = options->wait_ms > 0 ? options->wait_ms : 0,
        .max_attempts = options->nonblock ? EVLOCK_TRY : 0,
    };
}
