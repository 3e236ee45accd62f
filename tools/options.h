/*
 * The options of the command line: rows that say what an option is called, what it sets and what the help says of it.
 * The options that subcommands share are here, in groups; each subcommand has rows of its own. It owns the values of
 * the shared ones. It never sends anything.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <evlock/evlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What an option sets. */
enum option_kind {
    OPTION_FLAG,     /**< a bool, to true */
    OPTION_COUNT,    /**< an int, by one more */
    OPTION_TEXT,     /**< a const char * */
    OPTION_NUMBER,   /**< an int64_t, from `least` to `most` */
    OPTION_DURATION, /**< an int64_t in milliseconds, from `least` to `most` */
    OPTION_SIGNAL,   /**< an int: the number of a signal by its name or number */
    OPTION_URL,      /**< one more of `urls`; only among the shared options */
};

/** One option. Rows end with one that is all zero. */
struct option_row {
    const char *name; /**< the long one, without dashes */
    char letter;      /**< the short one; 0: none */
    enum option_kind kind;
    void *value;          /**< what it sets */
    const char *argument; /**< what the help calls its argument; NULL for a flag */
    const char *help;     /**< one line */
    int64_t least, most;  /**< of numbers and durations; both 0: a number from 0, a duration from 1 ms, without limit */
};

/** The groups of shared options. */
enum options_group {
    OPTIONS_SERVER = 1, /**< the servers, the login, TLS, the prefix, --json, -v, -q: for all that talk to a server */
    OPTIONS_LEASE = 2,  /**< --ttl, --holder, --min-replicas: for all that acquire or renew */
    OPTIONS_WAIT = 4,   /**< -n, -w, -E, --queue, --poll: for all that wait for a lock */
    OPTIONS_WORK = 8,   /**< --fence, --at-most, -s, -k and more: for all that run a command under a lock */
    OPTIONS_FIRST = 16, /**< no group: options end at the first operand, since what follows is a command's own */
};

/** The values of the shared options. What was not given is 0, NULL or false, but for those that say otherwise. */
struct options {
    char *urls[EVLOCK_NODES_MAX]; /**< which may have passwords; wiped when the session has them */
    size_t url_count;
    const char *user;
    const char *password_file;
    int64_t password_fd; /**< -1: none */
    const char *sentinel_user;
    int64_t failover_wait_ms;
    const char *cacert, *cert, *key, *sni;
    const char *prefix;
    int64_t max_ttl_ms;     /**< 60 s, as the library has it */
    int64_t server_wait_ms; /**< how long a server that is away at the beginning is waited for */
    bool json, quiet;
    int verbose;

    int64_t ttl_ms; /**< 10 s */
    int64_t min_replicas;
    const char *holder; /**< "HOST:PID" */

    bool nonblock;    /**< also for --wait 0 */
    int64_t wait_ms;  /**< -1: without limit */
    int64_t not_had;  /**< EXIT_NOT_HAD */
    bool queue, poll; /**< at most one of them */

    bool fence, nested, foreground, leave;
    int end_signal;        /**< SIGTERM */
    int warn_signal;       /**< 0: none */
    int64_t kill_after_ms; /**< -1: a second, or a fifth of a short ttl */
    int64_t at_most_ms;
};

/**
 * Reads the options of a subcommand from its words: argv[0] is its name, argc counts it. Rows of `groups` and `own` are
 * known. Options end behind "--". `*ret_first` is the first operand's index. `*ret_help` is true where --help stands:
 * then nothing else matters. Returns 0, or the exit status of an error that was said.
 */
int options_parse(unsigned groups, const struct option_row *own, int argc, char **argv, int *ret_first, bool *ret_help);

/** The values of the shared options. */
const struct options *options_shared(void);

/** The rows of one group, for the help and the completions. */
const struct option_row *options_rows(enum options_group group);

/** Prints the options as a table on the standard output: `own`, and those of the groups. */
void options_help(unsigned groups, const struct option_row *own);

/**
 * Whether a lease of this length is allowed: --max-ttl counts in a quorum, and with --failover-wait. Returns 0, or the
 * exit status of an error that was said.
 */
int options_check_ttl(const struct options *options, int64_t ttl_ms);

/**
 * What the library wants of a lock, by these options: ttl, holder, prefix, replicas, and how and how long it
 * waits. The caller adds fence, renewal and callbacks.
 */
evlock_options options_lock(const struct options *options);

#endif
