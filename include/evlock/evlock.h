/*
 * evlock: distributed locks in Redis or Valkey, for event-loop programs.
 *
 * This header is the manual. A lock is a name that at most one holder has at a time. An `evlock` is a handle: one
 * user's object for one lock. An `evlock_client` is the server connection that handles share. It belongs to one event
 * loop. No call blocks: a call that needs the server returns at once, and a callback reports the result.
 *
 *     #include <evlock/libevent.h>
 *
 *     static void on_acquired(evlock *lock, int status, void *arg) {
 *         if (status == EVLOCK_OK)
 *             evlock_release(lock, NULL, NULL);
 *     }
 *
 *     evlock_client_new_libevent(&client, base, "redis://127.0.0.1", NULL);
 *     evlock_new(&lock, client, "invoices", EVLOCK_CSTRING, NULL);
 *     evlock_acquire(lock, NULL, on_acquired, NULL);
 *     event_base_dispatch(base);
 *
 * THE LIFE OF A HANDLE, and the report of each change:
 *
 *                 limit, trouble or evlock_cancel(): cb(why)
 *           +---------------------------------------------------+
 *           v                                                   |
 *     +-----------+   evlock_acquire, evlock_adopt        +-----------+
 *     |   idle    | ------------------------------------> |  waiting  |
 *     +-----------+                                       +-----------+
 *        ^     ^        deadline passed, or token gone:         |  granted: cb(EVLOCK_OK)
 *        |     |        on_lost(why)                            v
 *        |     +----------------------------------------- +-----------+
 *        | cb(EVLOCK_OK or why)                           |   held    | <--+
 *     +-----------+          evlock_release               +-----------+    | renewed, extended
 *     | releasing | <------------------------------------    |     |       |
 *     +-----------+                                          |     +-------+
 *                                                            +--> on_at_risk(why): it stays held
 *
 * THE LEASE. A grant is a lease. It lasts for the lock's ttl, counted on the server, or until it is released. The
 * holder may believe in the lease until its deadline:
 *
 *     deadline = (clock read before the command was sent) + ttl - drift,    drift = ttl / 100 + 2 ms
 *
 * That clock does not step, and goes on in suspend (CLOCK_BOOTTIME). It stands still while a virtual machine is paused.
 * The drift is what the two clocks may differ by over one ttl: one part in a hundred, and the server's grain of one
 * millisecond. Time daemons may correct the two clocks by no more than that together. chrony corrects more, unless its
 * maxslewrate is set: see docs/safety.md.
 *
 * evlock_is_held() and evlock_remaining_ms() answer from the deadline, at once and exactly. `on_lost` reports a lease
 * that ends other than by release. It comes once, even if the network is silent: in the first turn of the loop after
 * deadline - lost_lead_ms. If the loop is blocked for less than lost_lead_ms, this is before the deadline. It may be
 * later where the loop is blocked for longer, or runs on an overloaded machine without real-time priority.
 *
 * CALLBACKS. A call that returned EVLOCK_OK calls its callback exactly once: from the event loop, and never before the
 * call has returned. A call that returned an error never calls back. A callback may call anything, also evlock_free()
 * and evlock_client_free() on the objects in question. The calls that were pending on a freed handle report
 * EVLOCK_ECANCELLED, with NULL for the handle. A call that had been answered before, such as a release that was done,
 * reports its own status. But an acquire never reports EVLOCK_OK without its handle: what it was granted was given up
 * with the handle. evlock_hold() alone reports many times.
 *
 * THREADS. A client and its handles belong to one thread: the one that made the client. The first time that the loop
 * calls evlock in another thread, they belong to that thread from then on. evlock_client_move() gives them to the
 * thread that calls it. Any other thread that calls evlock on them gets EVLOCK_ETHREAD, or 0, NULL or EVLOCK_AWAY where
 * no status is returned, and nothing is done. This includes evlock_free() and evlock_client_free(): they free nothing
 * then. on_log gets a line of level EVLOCK_LOG_ERROR when the loop next calls evlock. evlock_client_post() may be
 * called in any thread: it has a function called in the client's thread. evlock_name() answers in every thread. Handles
 * whose client is gone may be freed in any. While evlock_client_free() runs, or the client ends after
 * evlock_client_close(), no other thread may be in a call on the client or its handles. Clients in different threads
 * are independent of each other.
 *
 * FORK. A child by fork(), _Fork() or a bare clone has a copy of the memory. There, every call on the parent's objects
 * sends nothing and returns EVLOCK_EFORKED (or EVLOCK_ECLOSED, on a handle whose client is gone). The parent's locks
 * are not held there: evlock_is_held() is false. evlock_remaining_ms(), evlock_keepers(), evlock_fence() and
 * evlock_waited_ms() are 0, evlock_token() is NULL, and evlock_client_connection() is EVLOCK_AWAY. The child may free
 * the objects, if they belong to the thread that forked. This gives back memory, and closes the child's copies of
 * sockets and timers. libevent may print a warning then: an epoll failed. It means nothing. The parent's leases,
 * connections and event registrations stay as they are. In the child, the callbacks of the parent's calls are never
 * called, nor is the `done` of a run. evlock_client_free() also frees the handles of evlock_run() that the child has
 * not freed before. A child that is made inside a callback or a body may return from it. The child may run its copy of
 * the event loop after event_reinit() or uv_loop_fork(), best with everything freed before. A child by vfork() or
 * posix_spawn() has no copy, and may call nothing.
 *
 * STRINGS. Names and tokens are any bytes, with a length. EVLOCK_CSTRING as the length means that the bytes are a C
 * string. evlock copies what it is given: nothing has to outlive the call.
 *
 * TIME is in milliseconds everywhere, as int64_t. Attempts, extensions, releases, waits, connections and closes have a
 * time to end by. When that time is over, evlock first reads the sockets. So they end a moment after their time, and
 * only if the answer is not there yet. If the loop stood still while one was under way, that one gets as much time
 * again: 20 ms at least, and at most 100 ms, or command_timeout_ms if that is less. Deadlines of leases are not put
 * off.
 *
 * SERVERS. The simplest client has one server, by a URL: see evlock_client_new(). The next four sections are for
 * programs that use TLS, or more servers than one. Others may skip them. Every call on locks works unchanged with all
 * of these.
 *
 * TLS. The server is always verified: its chain of certificates, their dates, and the name or address. No option skips
 * that. Nothing of the login is sent before the server is verified. TLS 1.2 is the least version. What is trusted is
 * what `tls_ca` holds, or what the system trusts. A name that is an address must be in the certificate as an address.
 * The handshake counts into connect_timeout_ms. A server with a certificate that is not to be trusted is away with
 * EVLOCK_ECERT. It is treated like one that refuses the credentials.
 *
 *   - evlock_client_new() reads the files, which blocks. Before each connection their times are looked at, and files
 *     that changed are read again. So certificates may be renewed while the client lives. Files that cannot be used
 *     then are logged, and the ones before stay in use. Each must be a regular file of at most 16 MiB: no pipe or
 *     device is waited for. The system's certificates are not looked at again: a client made later sees what was added
 *     to them.
 *   - What the certificates must have is a host's name or a whole address. Anything else is refused: EVLOCK_EINVAL of a
 *     tls_name, EVLOCK_EURL of the URL's host. So are names that begin with a dot, have a wildcard, or end in a number
 *     (127.1). International names are written as "xn--…". A dot at the end and the zone of an address are left out.
 *   - A `tls_context` decides what is verified and how: keys in hardware, certificates in memory, checks of your own.
 *     The client keeps a reference, changes nothing in it, and still asks for the host's name. It excludes tls_ca,
 *     tls_cert and tls_key. It must not be changed while the client lives.
 *   - Sessions are resumed, for each node. A resumed session is not verified again. It ends when the files change, and
 *     no later than the server lets it live.
 *   - OpenSSL's queue of errors in this thread is left as it was found.
 *
 * SENTINEL. A master that Sentinels know by a name, and that may be another server after a failover, is
 *
 *     redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/NAME[/db]
 *
 * with 1 to EVLOCK_NODES_MAX Sentinels, at port 26379 unless given. rediss+sentinel:// is the same over TLS, to the
 * Sentinels and to the master. tls_name is that of all of them. valkey+sentinel://, valkeys+sentinel:// and
 * redis-sentinel:// mean the same. User and password are the master's. sentinel_user and sentinel_password are for the
 * Sentinels.
 *
 *   - All Sentinels are asked and listened to. The answer with the highest epoch wins. One that is away costs nothing
 *     while another answers. If none does, evlock goes on with the last master that was named. on_log gets a warning
 *     then.
 *   - When the master is another server, evlock leaves the old one at once. A lease whose key the new master has stays
 *     held. Others are lost: with renewal, on_lost reports EVLOCK_EDATALOSS at once.
 *   - A server that is no master is left, and the Sentinels are asked again.
 *   - A master that is cut off from its replicas may go on granting. If its min-replicas-to-write allows that, on_log
 *     gets a warning. docs/safety.md has what a failover can do to a lock.
 *   - Sentinels that do not know the name make the client EVLOCK_EMASTER.
 *
 * CLUSTER. A Redis Cluster, by 1 to EVLOCK_NODES_MAX of its nodes, is
 *
 *     redis+cluster://[[user]:password@]host[:port][,host[:port]...]
 *
 * at port 6379 unless given, and without a database. rediss+cluster:// is the same over TLS. valkey+cluster:// and
 * valkeys+cluster:// mean the same. Each lock lives on the master of its slot. A lock's queue and fence counter are in
 * that slot, too, whatever its name.
 *
 *   - The nodes given are asked, one after the other, for the table of the slots. After that, any master is asked. User
 *     and password are those of all nodes, and so is tls_name. Without tls_name, a certificate must have the name, or
 *     the address, that the cluster announces.
 *   - A master is connected to when a lock needs it. on_connection reports EVLOCK_CONNECTED when the table is known and
 *     each master that was needed is connected. It reports EVLOCK_AWAY when one of these cannot be reached. Locks of
 *     other masters go on meanwhile. evlock_client_node() reports on the masters that have slots, in no certain order.
 *     One that nothing has needed yet is EVLOCK_CONNECTING.
 *   - A slot may move, and a replica may take over, under locks that are held, renewed and waited for. A command that a
 *     node redirects to another costs no attempt. evlock_stats counts these as `redirects`. After five redirects in a
 *     row a command is refused for now: EVLOCK_EREFUSED. Before the later ones of the five there is a pause. A lease
 *     whose key the new master has stays held. Others are lost, as on one server.
 *   - While a slot moves, a lock's queue or counter may be on the way. An acquire with a fence, and one in the queue,
 *     waits for that. With a fence, it is refused for now after about three seconds. Waiters may lose their order. A
 *     close waits as well, while an acquire is to leave the queue. evlock_client_free() follows no key that is on the
 *     way: such a key is left to its ttl.
 *   - With min_replicas, an acquire fails with EVLOCK_EREPLICAS if the slot moves while the replicas are asked.
 *   - on_login is asked for node 0, and once for all nodes. evlock_client_login() is for all nodes, whichever is named.
 *   - With failover_wait_ms, all masters with slots are connected to at once. One without slots counts as away: it gets
 *     no mark of its history. See FAILOVERS of evlock_client_options.
 *   - A server that is in no cluster makes the client EVLOCK_EUNSUPPORTED. So does one of several masters of a cluster
 *     behind redis://.
 *
 * QUORUM. Several independent servers stand in one string, behind the word `quorum:`, with spaces between them:
 *
 *     quorum:redis://a redis://b redis://c
 *
 * There are 1 to EVLOCK_NODES_MAX of them, and each is one server: no Sentinels, no cluster. Such a client holds a lock
 * where a majority of the servers (count / 2 + 1) does: the Redlock quorum. The servers must share nothing: no
 * replication between them. One URL behind the word makes the client that the URL alone makes. On several nodes:
 *
 *   - All nodes are asked at once. The answer that completes the quorum grants an acquire. The deadline is the
 *     quorum-th greatest of the nodes' deadlines. A failed attempt is undone on every node.
 *   - While a quorum answers, a node that is away, silent or refusing costs no time. An attempt that needs such a node
 *     waits for it, for the lock's node_timeout_ms.
 *   - A node may forget a lock without being excluded: by FLUSHALL, eviction, a clock that steps, or a restart with
 *     `durable`. A lease that a bare majority keeps is not safe from one such node. As many nodes may forget it as keep
 *     it beyond the majority: see evlock_keepers(). So a held lease is put on the nodes that lack it, where the key is
 *     free, for the time that is left. This is done 50 ms after the grant (or a twentieth of the ttl, if that is less),
 *     and when a node comes back. The next renewal asks a node again that said no. A node whose exclusion has ended is
 *     asked by the second renewal after that at the latest. Without renewal both are asked after each eighth of the ttl
 *     (10 ms to 10 s). After max_hold_ms nothing of this is done.
 *   - A node may have forgotten locks when it restarted, or when another process or a promoted replica took its place.
 *     It is not asked to grant any lock, and does not count, until max_ttl_ms after its start, or after the change was
 *     first seen. By then every lock that it may have forgotten has ended. So servers that have just started grant
 *     nothing for max_ttl_ms. It can be up to a second more, since a server reports its age in whole seconds.
 *     evlock_client_node() reports for how long. With `durable` they count at once. The start is reckoned from the age
 *     that the server claims, unless `distrust_uptime` is set. A server that gives no age or no run_id may have changed
 *     at each login.
 *   - A server that is given twice is refused. EVLOCK_ESAME is returned where two URLs name one host and port, or one
 *     socket, whatever the database. Otherwise the server's run_id shows it. Then the node that logs in later is kept
 *     away with that status, until max_ttl_ms after the other was last connected.
 */
#ifndef EVLOCK_EVLOCK_H
#define EVLOCK_EVLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <evlock/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Types and named values --------------------------------------------------------------------------------------- */

#define EVLOCK_VERSION_MAJOR 0        /**< of this header */
#define EVLOCK_VERSION_MINOR 2        /**< of this header */
#define EVLOCK_VERSION_PATCH 0        /**< of this header */
#define EVLOCK_VERSION_STRING "0.2.0" /**< of this header */

/** The version of the library that runs, as "major.minor.patch"; a static string. */
EVLOCK_EXPORT const char *evlock_version(void);

/** A handle for one lock. */
typedef struct evlock evlock;
/** A server connection shared by handles, on one event loop. */
typedef struct evlock_client evlock_client;

/** Stands for the length of a C string: the bytes up to the NUL. */
#define EVLOCK_CSTRING ((size_t)-1)

/** The sizes of things. */
enum {
    EVLOCK_NODES_MAX = 15,     /**< the most servers that a client can have */
    EVLOCK_TOKEN_MAX = 128,    /**< the longest token, in bytes */
    EVLOCK_STATS_BUCKETS = 33, /**< of a histogram, see evlock_stats */
    EVLOCK_ADDRESS_SIZE = 112, /**< of a node's address, in bytes, with its NUL */
    EVLOCK_PRODUCT_SIZE = 20,  /**< of what a server is called, in the same way */
    EVLOCK_VERSION_SIZE = 24,  /**< of its version, in the same way */
};

/** Values of options that have a name. Zero is always the default. */
enum {
    EVLOCK_TRY = 1,        /**< of max_attempts: one attempt, and no waiting */
    EVLOCK_UNLIMITED = -1, /**< of max_attempts, max_wait_ms and max_hold_ms: without limit */
    EVLOCK_NO_EXPIRY = -1, /**< of ttl_ms: the lock never expires */
    EVLOCK_NO_JITTER = -1, /**< of retry_jitter: every pause is as long as the others */
    EVLOCK_NO_LEAD = -1,   /**< of lost_lead_ms: on_lost is called at the deadline, and not before */
};

/** An option of one acquire that its lock has too. It is no bool: `false` would be EVLOCK_INHERIT. */
enum evlock_override {
    EVLOCK_INHERIT = 0, /**< as the lock's options say */
    EVLOCK_ON = 1,      /**< on, for this acquire */
    EVLOCK_OFF = 2,     /**< off, for this acquire */
};

/* --- Options ------------------------------------------------------------------------------------------------------ */

/*
 * Options are structs. Zero means the default, in every field. Give them where they are wanted:
 *
 *     evlock_new(&lock, client, "invoices", EVLOCK_CSTRING, EVLOCK_OPTIONS(.ttl_ms = 2000, .auto_renewal = true));
 *
 * The macros EVLOCK_OPTIONS(), EVLOCK_ACQUIRE_OPTIONS() and EVLOCK_CLIENT_OPTIONS() take fields in the notation of C99
 * or C++20. They give the address of a struct. It lives until the end of the block (C) or of the call (C++). A variable
 * starts as `evlock_options options = {.size = sizeof options};`. In older C++, and in other languages, a struct that
 * is all zero but for `size` is right too: evlock_options_init() makes one.
 *
 * The structs grow at their ends. A program that was built with an older header has a smaller struct, and keeps
 * working. A program that was built with a newer header has a larger struct. It is refused with EVLOCK_EVERSION if it
 * sets a field that this library does not know. Reserved fields must be zero; else EVLOCK_EVERSION, too.
 */

/** Zeroes an options struct of `size` bytes and sets its `size` field. `size` is that of one of the options structs. */
EVLOCK_EXPORT void evlock_options_init(void *options, size_t size);

/* --- Statuses ----------------------------------------------------------------------------------------------------- */

/** What a call or a callback reports. Zero is success. Errors are negative. The values are stable. */
enum evlock_status {
    EVLOCK_OK = 0, /**< success */

    /* How an acquire or a lease can end. */
    EVLOCK_EHELD = -1,      /**< another holder has the lock */
    EVLOCK_ETIMEDOUT = -2,  /**< max_wait_ms passed before the lock was free */
    EVLOCK_ECANCELLED = -3, /**< cancelled, or its handle or client was freed or closed */
    EVLOCK_ENOTHELD = -4,   /**< this handle holds nothing; of a break: nobody holds the lock */
    EVLOCK_ENOTOWNED = -5,  /**< the server says that the token is not there: expired there, broken or taken */
    EVLOCK_ELOST = -6,      /**< the lease was lost; on_lost reported why */
    EVLOCK_ENOTTL = -7,     /**< the lock has no expiry, so there is none to extend */
    EVLOCK_EALREADY = -8,   /**< this handle is acquiring, holds, or is being released already */
    EVLOCK_EQUORUM = -9,    /**< too few nodes agreed */
    EVLOCK_EREPLICAS = -10, /**< too few replicas confirmed the lock in time */
    EVLOCK_EFENCE = -11,    /**< the server gave a fence that is not greater than one this client has seen, or its
                                 counter is beyond reason */
    EVLOCK_EEXCLUDED = -12, /**< of a node: it restarted or was replaced lately, and does not count yet. Of an acquire:
                                 the lock's server is such a node, and failover_wait_ms is set */
    EVLOCK_EEXPIRED = -13,  /**< the lease's deadline passed: it was not renewed in time, or has no renewal */
    EVLOCK_EDATALOSS = -14, /**< as ENOTOWNED, and the server is not the process that granted it: it lost its data */
    EVLOCK_EMAXHOLD = -15,  /**< as EEXPIRED, after max_hold_ms had ended the lease's renewal */

    /* What can be wrong with an argument; found before anything is sent. */
    EVLOCK_EINVAL = -20,   /**< NULL, out of range, or options that exclude each other */
    EVLOCK_ENAME = -21,    /**< a name is 1 to 512 bytes long, its prefix included */
    EVLOCK_ETOKEN = -22,   /**< a token is 1 to EVLOCK_TOKEN_MAX bytes long */
    EVLOCK_ETTL = -23,     /**< a ttl is longer than its drift, and at most ten years; with several nodes, or with
                                failover_wait_ms, at most the client's max_ttl_ms */
    EVLOCK_ERETRY = -24,   /**< the retry delay is longer than the ttl */
    EVLOCK_ERENEWAL = -25, /**< the renewal interval is not shorter than what the ttl leaves after its drift */
    EVLOCK_EURL = -26,     /**< the URL is malformed */
    EVLOCK_ESCHEME = -27,  /**< the URL's scheme is unknown, or is rediss:// and TLS is not built in */
    EVLOCK_EPATH = -28,    /**< the unix socket's path is longer than the system takes */
    EVLOCK_ESAME = -29,    /**< two nodes of a client are the same server */
    EVLOCK_EQUEUE = -30,   /**< a queue needs a single node without failover_wait_ms, and a ttl; it counts no
                                attempts */
    EVLOCK_EHOLDER = -31,  /**< a holder's name is 1 to 91 bytes long */
    EVLOCK_ETLS = -32,     /**< a certificate or key cannot be used; evlock_last_error() says which, and why */
    EVLOCK_EFILE = -33,    /**< the password file cannot be read, or holds no password */

    /* What can be wrong with the library's surroundings. */
    EVLOCK_ECLOSED = -40,  /**< the client is closing, or gone */
    EVLOCK_EFORKED = -41,  /**< the object belongs to the parent process */
    EVLOCK_ENOMEM = -42,   /**< out of memory */
    EVLOCK_ESYSTEM = -43,  /**< the system or the event loop refused a timer, a socket or random bytes */
    EVLOCK_ETHREAD = -44,  /**< called from another thread than the client's; see THREADS */
    EVLOCK_EVERSION = -45, /**< the options set a field that is newer than this library */

    /* What can be wrong with the server. */
    EVLOCK_EUNREACHABLE = -60, /**< no connection, or no answer in time */
    EVLOCK_EAUTH = -61,        /**< wrong or missing user or password */
    EVLOCK_EPERM = -62,        /**< the server's access rules forbid a command, a key or a script */
    EVLOCK_EWRONGTYPE = -63,   /**< the key holds something that is not a lock */
    EVLOCK_EREFUSED = -64,     /**< not now: loading, busy, read-only, out of memory, too many clients */
    EVLOCK_EUNSUPPORTED = -65, /**< the server lacks something, such as scripts; it is a Sentinel; or another node of
                                    its cluster has the name. Of a post: the event loop cannot be woken */
    EVLOCK_EPROTOCOL = -66,    /**< an answer that the command cannot have; of rediss://: the server speaks no TLS, or
                                    none that this client accepts */
    EVLOCK_ECERT = -67,   /**< the server's certificate is not to be trusted, or the server refuses this client's */
    EVLOCK_EMASTER = -68, /**< no Sentinel that answers knows a master by the URL's name */
};

/** What a status means, in a few words; a static string, also for values that are none. */
EVLOCK_EXPORT const char *evlock_strerror(int status);

/** The name of a status, as "EVLOCK_EHELD"; "EVLOCK_?" for a value that is none. A static string. */
EVLOCK_EXPORT const char *evlock_status_name(int status);

/**
 * The details of the last failure that evlock reported to this thread, by a return value or in a callback. They say
 * what was wrong with which argument, or they are the server's own words. Of a connection they begin with its server.
 * An example: "127.0.0.1:6379: Connection refused". It is never NULL. It is "" when there is nothing to add to
 * evlock_strerror(). It never contains a token or a password. It is valid until the next call or callback of evlock in
 * this thread.
 */
EVLOCK_EXPORT const char *evlock_last_error(void);

/* --- Callback types ----------------------------------------------------------------------------------------------- */

/**
 * The end of a call, or what happened to a lease: see on_lost and on_at_risk. `lock` is NULL if the handle has been
 * freed meanwhile.
 */
typedef void (*evlock_cb)(evlock *lock, int status, void *arg);

/* --- Memory ------------------------------------------------------------------------------------------------------- */

/**
 * Replaces the functions by which evlock itself allocates. (hiredis and the event loop have hooks of their own.)
 * `resize` is as realloc. `release` is as free, and takes what `resize` gave. NULL for both: realloc and free. Call it
 * before anything else of the library, in one thread. Returns EVLOCK_OK, or EVLOCK_EINVAL if only one is given.
 */
EVLOCK_EXPORT int evlock_set_allocator(void *(*resize)(void *block, size_t size), void (*release)(void *block));

/* --- The client --------------------------------------------------------------------------------------------------- */

/** How important a log line is. */
enum evlock_log_level {
    EVLOCK_LOG_DEBUG = 1, /**< every step of every lock */
    EVLOCK_LOG_INFO = 2,  /**< connections made, and those lost while nothing was asked of them */
    EVLOCK_LOG_WARN = 3,  /**< connections that fail, or are lost with commands unanswered; renewals failing; a
                               server setting that endangers locks */
    EVLOCK_LOG_ERROR = 4, /**< leases lost, credentials refused */
};

/** A log line, without a newline; valid during the call. It must not call evlock. */
typedef void (*evlock_log_cb)(enum evlock_log_level level, const char *line, void *arg);

/**
 * A ready on_log: writes "evlock: LEVEL: LINE" and a newline to the standard error, by one write. LEVEL is DEBUG, INFO,
 * WARN or ERROR. `arg` is not used. Any thread may call it.
 */
EVLOCK_EXPORT void evlock_log_stderr(enum evlock_log_level level, const char *line, void *arg);

/** What the connection is doing. */
enum evlock_connection {
    EVLOCK_CONNECTING = 1, /**< resolving, connecting, authenticating */
    EVLOCK_CONNECTED = 2,  /**< ready for commands */
    EVLOCK_AWAY = 3,       /**< lost or refused; the next try comes by itself. A connection that had served and is lost
                                is made anew at once: CONNECTING follows, without AWAY between */
};

/**
 * The connection changed its state; on several nodes, one of them did, and `state` is of all together as for
 * evlock_client_connection(). When it is EVLOCK_AWAY, `status` says why (EVLOCK_EUNREACHABLE, EVLOCK_EAUTH,
 * EVLOCK_ECERT, EVLOCK_EPERM, EVLOCK_EREFUSED, EVLOCK_EUNSUPPORTED, EVLOCK_EPROTOCOL, EVLOCK_EMASTER,
 * EVLOCK_EEXCLUDED, EVLOCK_ENOMEM), and evlock_last_error() in which words.
 */
typedef void (*evlock_connection_cb)(evlock_client *client, enum evlock_connection state, int status, void *arg);

/**
 * Connections to node `node` are open and wait for credentials. Answer by evlock_client_login(): in this call, or later
 * from any other. They wait within connect_timeout_ms. Each login asks, unless another connection to the node asked
 * before it and still waits: one answer serves all that wait. Where the server refuses the answer, that connection asks
 * once more, at once. It comes from the end of a turn of the loop, like every callback, and never inside a call. It
 * also comes while the client closes, for what is still to be released. It never comes after evlock_client_free().
 */
typedef void (*evlock_login_cb)(evlock_client *client, size_t node, void *arg);

/** OpenSSL's SSL_CTX. Programs that give none need no header of OpenSSL's. */
struct ssl_ctx_st;

/**
 * Options of a client; see EVLOCK_CLIENT_OPTIONS(). Strings are copied. Times are in milliseconds, ten years at most.
 */
typedef struct evlock_client_options {
    size_t size;                /**< of this struct; EVLOCK_CLIENT_OPTIONS() sets it */
    int64_t connect_timeout_ms; /**< for name, connection and login together; default 5,000 */
    int64_t command_timeout_ms; /**< A connection is ended when commands wait for an answer on it, and none comes
                                     for this time. A release or an extension is answered by then. Default 5,000 */
    int64_t backoff_min_ms;     /**< the first pause before connecting again; default 50. Pauses double. Each is
                                     drawn at random from its upper half. Where a quick return cannot help, as with
                                     refused credentials, the first pause is as long as the longest. A connection
                                     that was of use is made again without a pause, unless the one before was also
                                     lost soon */
    int64_t backoff_max_ms;     /**< the longest pause, not less than backoff_min_ms; default 5,000 */
    int64_t max_inflight;       /**< the most commands that are sent and unanswered, for each node; the others wait
                                     their turn; default 65,536 */
    int64_t max_ttl_ms;         /**< with several nodes, or with failover_wait_ms: the longest ttl of any lock. Give all
                                     clients the same. Longer ttls are refused, and locks without expiry too. A node
                                     that restarted does not count for this time. Default 60,000 */
    int64_t close_wait_ms;      /**< how long evlock_client_close() lets the bodies of runs go on; default
                                     EVLOCK_UNLIMITED */
    enum evlock_log_level log_level; /**< the least level to log; default EVLOCK_LOG_INFO */
    bool durable;                    /**< with several nodes: no node ever forgets a write that it acknowledged
                                          (appendfsync always), so a restarted node counts at once */
    bool distrust_uptime;            /**< with several nodes: this client takes its first login to a server process for
                                          that process's start, whatever age the server claims. An age is a difference
                                          of wall clocks. A server whose clock was set forward since its start claims
                                          too great an age, and counts too early. The price: with every new client, no
                                          node counts for max_ttl_ms */
    uint8_t reserved[2];             /**< zero */
    const char *user;                /**< wins over the URL's; default: the URL's. Without a user, the default user's
                                          password is meant */
    const char *password;            /**< wins over the URL's; default: the URL's */
    evlock_connection_cb on_connection; /**< default: none */
    evlock_log_cb on_log;               /**< default: none; nothing is logged */
    void *arg;                          /**< for on_connection, on_log and on_login */
    void *reserved_pointer;             /**< NULL */
    const char *connection_name;        /**< what CLIENT LIST shows for this client's connections: 1 to 64 visible
                                             characters of ASCII, without blanks. A server that refuses it is logged.
                                             Default: none */
    const char *tls_ca;                 /**< file (PEM) of the certificates to trust; default: the system's */
    const char *tls_cert;               /**< file (PEM) of this client's certificate and its chain; default: none */
    const char *tls_key;                /**< file (PEM) of its private key, not encrypted; with tls_cert */
    const char *tls_name;               /**< the name or address that the servers' certificates must have, and that
                                             is asked for; default: the URL's host */
    struct ssl_ctx_st *tls_context;     /**< OpenSSL's SSL_CTX, in place of the files; see TLS */
    const char *password_file;          /**< file whose first line is the password; see CREDENTIALS */
    evlock_login_cb on_login;           /**< asked for credentials before each login; see CREDENTIALS */
    const char *sentinel_user;          /**< for the Sentinels; with sentinel_password. Default: their default user */
    const char *sentinel_password;      /**< for the Sentinels; default: none is sent to them */
    int64_t failover_wait_ms;           /**< not for a quorum: for how long a server that was replaced may go on
                                             granting locks; see FAILOVERS. Give all clients the same. Default: 0,
                                             nothing is waited for */
} evlock_client_options;

/*
 * CREDENTIALS. They come from one source, else EVLOCK_EINVAL:
 *
 *   - `password`, or the URLs. They are kept while the client lives.
 *   - `password_file`. It is read by evlock_client_new(), and again at each login, so it may be replaced at any time.
 *     The reading blocks. The password is the first line, without its newline, and 64 KiB long at most. A file that
 *     cannot be read later makes the node EVLOCK_EAUTH, and is tried again. A relative path is looked for where the
 *     process is then.
 *   - `on_login`. It gives the user too, or else the user is that of the options. A URL names no user without a
 *     password.
 *
 * With the last two nothing is kept, and EVLOCK_EAUTH is no end: the next login may have better ones. Acquires, holds
 * and waiters go on, unless `fail_when_away` is set. A server that refuses a password is sent one once more, at once.
 * If it refuses that as well, the node is away with EVLOCK_EAUTH, for the longest pause.
 *
 * Passwords are in memory that core dumps leave out and forked children do not get, where the system can do that. What
 * is no longer needed is overwritten. One that is on its way to a server that reads nothing is in other memory until it
 * is sent. evlock_set_allocator() does not concern this memory.
 *
 * FAILOVERS. A server may lose locks that it had granted: when it restarts, or when a replica that lags takes its
 * place. Granted anew at once, such a lock has two holders. With `failover_wait_ms`, a server whose history is new
 * grants nothing while a lock of the server before it may still be held:
 *
 *   - First, for failover_wait_ms, the client stays away from it, with EVLOCK_EEXCLUDED. The server before it may not
 *     know yet that it was replaced, and may still grant and renew.
 *   - Then, for max_ttl_ms more, it grants no lock: acquires get EVLOCK_EEXCLUDED. Locks that are held are renewed. A
 *     key that was lost is set again, for nobody else can have it. A lease survives if two thirds of its ttl are longer
 *     than the failover and failover_wait_ms together.
 *
 * A history is new when the process (run_id) is another, or when data of another server were taken over
 * (master_replid). The time counts from the first login that saw it, of any client: it is kept under the key
 * `evlock:history`. A server that is asked for the first time has a new history, too.
 *
 * In a cluster each master waits by itself. Its key is `evlock:history:{NUMBER}`, in one of its slots. Other masters go
 * on granting. failover_wait_ms is cluster-node-timeout and 2 s at least. Do not move slots away from a master that
 * waits: a slot takes no wait along. A master that gets its first slots waits, too.
 *
 * Give all clients the same failover_wait_ms and max_ttl_ms. Locks have a ttl of max_ttl_ms at most, and poll: a queue
 * is EVLOCK_EQUEUE. Clients of other kinds do not wait. docs/safety.md says how long failover_wait_ms has to be. A
 * quorum has a way of its own: EVLOCK_EINVAL.
 */

/**
 * Makes a client, and begins to connect in the background. A connection that fails or is lost is tried again for as
 * long as the client lives. Calls may be made at once.
 *
 * Programs call evlock_client_new_libevent() of <evlock/libevent.h> or evlock_client_new_libuv() of <evlock/libuv.h>,
 * with their own loop. This function is for any other loop that has an adapter, see <evlock/loop.h>. `loop` is copied.
 * `url` is one of
 *
 *     redis://[[user]:password@]host[:port][/db]      a TCP address; port 6379 and db 0 unless given; [::1] for IPv6
 *     rediss://[[user]:password@]host[:port][/db]     the same over TLS
 *     unix:///path/to.sock[?db=N]                     a unix socket
 *     redis+sentinel://...                            a master that Sentinels know by a name
 *     redis+cluster://...                             a Redis Cluster
 *     quorum:redis://... redis://...                  several independent servers
 *
 * valkey:// means the same as redis://, and valkeys:// the same as rediss://. %XX stands for any byte. A password
 * without a user is the default user's. Host names are resolved without blocking. There is more about TLS (see TLS),
 * about a master behind Sentinels (see SENTINEL), about a cluster (see CLUSTER) and about several servers (see QUORUM).
 *
 * `options` may be NULL. `*ret_client` is set on success only. evlock_last_error() says which URL is wrong, by its
 * number from 0. It never quotes a password. It is no error here that no server answers: on_connection and the calls on
 * locks report it.
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (also: options of TLS or of Sentinels, and no URL with these), EVLOCK_ESAME,
 * EVLOCK_ESYSTEM, EVLOCK_ENOMEM, and:
 *   EVLOCK_EURL      a URL is malformed, or over TLS has a host that no certificate can be of; or there are several
 *                    without the word `quorum:`, none behind it, or too many; Sentinels or a cluster are among
 *                    several; or a cluster has a database
 *   EVLOCK_ESCHEME   the scheme of a URL is not supported
 *   EVLOCK_EPATH     the path of a URL's unix socket is too long
 *   EVLOCK_ETLS      a certificate or key cannot be read, is no regular file, is encrypted, or does not match the other
 *   EVLOCK_EFILE     the password file cannot be read, is empty, or has a first line that is no password
 *   EVLOCK_EVERSION  the options set a field that this library does not know
 */
EVLOCK_EXPORT int evlock_client_new(evlock_client **ret_client, const evlock_loop *loop, const char *url,
                                    const evlock_client_options *options);

/**
 * Makes the calling thread the client's, as if it had made the client. For programs that move their loop to another
 * thread, or end the thread of a loop and free the client in another. The loop must not run meanwhile, and no other
 * call may be under way. A pending callback comes from the loop, wherever that runs. Returns EVLOCK_OK, EVLOCK_EINVAL
 * (NULL), EVLOCK_EFORKED.
 */
EVLOCK_EXPORT int evlock_client_move(evlock_client *client);

/** What evlock_client_post() calls. `client` is NULL if evlock_client_free() ended it meanwhile. */
typedef void (*evlock_post_cb)(evlock_client *client, void *arg);

/**
 * Calls `cb` once, soon, in the client's thread, from the loop. This call may come from any thread, while the client
 * lives: let no thread post any more before you end the client. Inside `cb` anything may be called. Order is kept: a
 * post that began after another had returned is called after it. None is lost, and none is called twice:
 *   - while the client closes, posts are taken and called as before; all are called before the client ends. So a thread
 *     may end the last body of a run by a post, and the client lives until that call has returned;
 *   - evlock_client_free() calls them with NULL on the next turn of the loop, as it ends pending calls;
 *   - a forked child calls none of its parent's.
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (NULL), EVLOCK_ECLOSED (the client is about to end), EVLOCK_EFORKED, EVLOCK_ENOMEM,
 * and EVLOCK_EUNSUPPORTED for a loop that cannot be woken from another thread, as those of libevent and libuv can.
 */
EVLOCK_EXPORT int evlock_client_post(evlock_client *client, evlock_post_cb cb, void *arg);

/**
 * What a server cannot do, or does not let this user do. A lock is possible without any of these but scripts. evlock
 * finds them out at the login and by the first refusal, and on_log gets a line for each on each connection.
 */
enum evlock_missing {
    EVLOCK_MISSING_SCRIPTS = 1,   /**< EVALSHA and EVAL: there are no locks here, for nothing could be released safely.
                                       The login fails with EVLOCK_EUNSUPPORTED or EVLOCK_EPERM, and is tried again */
    EVLOCK_MISSING_DIGESTS = 2,   /**< SCRIPT LOAD or EVALSHA: each command with a script carries the whole script, up
                                       to 6 kB */
    EVLOCK_MISSING_BATCHES = 4,   /**< many renewals as one command, which needs Redis 7: each lock is renewed by a
                                       command of its own. Where only keys of several slots are refused, locks with the
                                       same hash tag are still renewed together */
    EVLOCK_MISSING_IDENTITY = 8,  /**< INFO with a run_id: lost data are reported as EVLOCK_ENOTOWNED. With several
                                       nodes, this one does not count for max_ttl_ms after each login */
    EVLOCK_MISSING_KILL = 16,     /**< the end of a lost connection by CLIENT KILL, with a CLIENT ID of its own and a
                                       run_id: an attempt whose outcome is unknown is undone again for up to one ttl */
    EVLOCK_MISSING_CLOCK = 32,    /**< TIME in scripts: the client brings the server's clock. A handover in the queue
                                       takes one more round trip. Waiters that come at nearly the same time may change
                                       places. A fence that is drawn just after the counter was lost may not be greater
                                       than the last one */
    EVLOCK_MISSING_CHANNELS = 64, /**< PUBLISH, PUBSUB or SUBSCRIBE: there is no queue, and waiters poll */
    EVLOCK_MISSING_WAIT = 128,    /**< WAIT: an acquire with min_replicas ends with EVLOCK_EUNSUPPORTED or
                                       EVLOCK_EPERM */
    EVLOCK_MISSING_TIME = 256,    /**< TIME, in scripts and as a command: an acquire with a fence ends with
                                       EVLOCK_EUNSUPPORTED. There is no queue, and waiters poll */
};

/**
 * Whether a server's data outlive its process, by what it says of itself (INFO persistence). A service may keep data in
 * another way, which this does not show.
 */
enum evlock_persistence {
    EVLOCK_PERSISTENCE_UNKNOWN = 0, /**< it does not say, or this user may not ask */
    EVLOCK_PERSISTENCE_NO_AOF = 1,  /**< no append-only file: a restart may forget locks. Snapshots are no help to a
                                         lock that is younger than the last one */
    EVLOCK_PERSISTENCE_AOF = 2,     /**< an append-only file: a restart forgets what had not reached the disk. That is
                                         nothing with `appendfsync always`, which the server does not say here */
};

/** What is known of one node. Later versions append fields. */
typedef struct evlock_node_info {
    enum evlock_connection connection; /**< of this node */
    int status;                        /**< EVLOCK_OK; why it is away; or EVLOCK_EEXCLUDED */
    int64_t excluded_ms;               /**< for how long it will not count yet; 0: it counts when it is connected */
    bool agreed;                       /**< its last answer to an acquire, renewal or extension was yes */
    uint8_t reserved[7];               /**< zero */
    uint32_t missing;                  /**< what the server lacks, as far as it is known: enum evlock_missing, added up.
                                            While the node is away, this is of its last connection */
    uint8_t reserved_more[4];          /**< zero */

    char address[EVLOCK_ADDRESS_SIZE]; /**< where it is: "HOST:PORT", a very long host cut, or a unix socket's path. "":
                                            not known yet, as while no Sentinel has named the master */
    char product[EVLOCK_PRODUCT_SIZE]; /**< what the server says it is: "Redis", "Valkey" and others. One without a name
                                            of its own, such as KeyDB, says "Redis". "": not known. What the server says
                                            of itself is of its last connection while the node is away */
    char version[EVLOCK_VERSION_SIZE]; /**< of that product, as the server words it. "": not known */
    enum evlock_persistence persistence; /**< whether it keeps its data, as far as it says */
} evlock_node_info;

/**
 * Reports on one node, in the order of the URLs, from 0. `size` is sizeof(evlock_node_info): a newer library fills in
 * as much as an older program knows, and an older library zeroes what it does not know. evlock_last_error() has the
 * node's trouble in words afterwards. Nothing is sent. Returns EVLOCK_OK, EVLOCK_EINVAL (also: past the last node), or
 * EVLOCK_EFORKED.
 */
EVLOCK_EXPORT int evlock_client_node(const evlock_client *client, size_t index, evlock_node_info *ret_info,
                                     size_t size);

/** Stands for all nodes, where one is to be named. */
#define EVLOCK_ALL_NODES ((size_t)-1)

/**
 * From now on, these are the credentials of a node; `node` is its number from 0, or EVLOCK_ALL_NODES. It answers
 * on_login, and may be called at any time: before a token ends, or when a password was changed. `user` may be NULL: the
 * options', or the URL's, or else the default user. Both strings are copied, and wiped after use. The last call counts:
 * a second answer to one question is no error, since credentials may change again before they are used.
 *
 *   - Connections that wait for credentials log in with these. So do those that are away or connecting, the next time.
 *   - Living connections log in anew (AUTH), behind what was sent before. Locks, commands and places in line stay. If
 *     the server refuses, the connection keeps the login that it has, stays connected, and on_log gets a line of level
 *     EVLOCK_LOG_WARN.
 *   - A connection that listens for grants cannot do that. It is replaced: the old one ends when the new one listens.
 *
 * With on_login or password_file, later logins ask or read again. Without them, these take the place of the options'
 * and the URL's.
 *
 * With NULL for both strings it asks for new ones: on_login is called from the loop, whatever waits, or the
 * password file is read now. Without both, living connections log in anew with what the client has.
 *
 * Returns EVLOCK_OK, EVLOCK_ENOMEM, EVLOCK_ECLOSED (the client is gone; while it closes, this call is taken),
 * EVLOCK_EFORKED, EVLOCK_ETHREAD (evlock_client_post() hands it over), and:
 *   EVLOCK_EINVAL   NULL, no such node, a user without a password, nothing to log in with, or no password inside
 *                   on_login
 *   EVLOCK_EFILE    the password file cannot be read, or holds no password; evlock_last_error() says why
 * After an error nothing has changed.
 */
EVLOCK_EXPORT int evlock_client_login(evlock_client *client, size_t node, const char *user, const char *password);

/** What the connection does now; EVLOCK_AWAY for NULL. With several nodes: EVLOCK_CONNECTED while a quorum of them is
 *  connected, EVLOCK_AWAY while too many are away, else EVLOCK_CONNECTING. */
EVLOCK_EXPORT enum evlock_connection evlock_client_connection(const evlock_client *client);

/**
 * What a client's locks went through since it was made. Of a histogram, bucket 0 counts durations of 0 us. Bucket i
 * counts those from 2^(i-1) us to below 2^i us. The last bucket counts all that are longer: half an hour and more.
 */
typedef struct evlock_stats {
    uint64_t acquired;                   /**< acquires that reported EVLOCK_OK */
    uint64_t waited;                     /**< of these, those that did not get the lock at once */
    uint64_t handed;                     /**< of these, those that the queue granted by a message */
    uint64_t failed;                     /**< acquires that reported an error, cancelled ones too */
    uint64_t released;                   /**< releases that reported EVLOCK_OK */
    uint64_t renewals;                   /**< automatic renewals confirmed, by each node, those of a pass included */
    uint64_t lost_expired;               /**< leases lost with EVLOCK_EEXPIRED */
    uint64_t lost_not_owned;             /**< leases lost with EVLOCK_ENOTOWNED */
    uint64_t lost_data;                  /**< leases lost with EVLOCK_EDATALOSS */
    uint64_t lost_max_hold;              /**< leases lost with EVLOCK_EMAXHOLD */
    uint64_t reconnects;                 /**< connections to nodes that were made again */
    uint64_t wait[EVLOCK_STATS_BUCKETS]; /**< from the acquire's call to the grant */
    uint64_t hold[EVLOCK_STATS_BUCKETS]; /**< from the grant to the release's call, or the loss */
    uint64_t redirects;                  /**< commands that a cluster's node sent on to another */
    uint64_t passed;                     /**< of the acquires, those to which a lease was passed on */
} evlock_stats;

/**
 * Copies the counters. `size` is sizeof(evlock_stats): a newer library fills in as much as an older program knows, and
 * an older library zeroes what it does not know. Nothing is sent. Returns EVLOCK_OK, EVLOCK_EINVAL, or EVLOCK_EFORKED.
 */
EVLOCK_EXPORT int evlock_client_stats(const evlock_client *client, evlock_stats *ret_stats, size_t size);

/** The end of a close. The client is gone when this is called. */
typedef void (*evlock_closed_cb)(int status, void *arg);

/**
 * Ends a client in good order. From now on, calls on it and on its handles return EVLOCK_ECLOSED. Pending acquires
 * report EVLOCK_ECANCELLED. What is held is released. Releases are waited for, for command_timeout_ms at most. Then the
 * connection ends, the client is freed, and `cb` is called, which may be NULL. It reports EVLOCK_OK if every key is
 * known to be gone from the server, and EVLOCK_EUNREACHABLE if some are left to their ttl. Handles stay the user's, to
 * be freed before or after.
 *
 * Runs whose body was called go on until their body ends. They keep their leases, renewed as ever. They alone get
 * reports of a loss after this call, and evlock_release() ends their bodies as before. The client waits for them for
 * close_wait_ms, and for command_timeout_ms more from the last body's end. When close_wait_ms has passed, the runs that
 * are left are ended. Their leases are released. Their `done` reports EVLOCK_ECANCELLED at once, though the body has
 * not ended. Runs that wait are acquires: they end at once, with EVLOCK_ECANCELLED.
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (NULL), EVLOCK_ECLOSED (closing already), EVLOCK_EFORKED.
 */
EVLOCK_EXPORT int evlock_client_close(evlock_client *client, evlock_closed_cb cb, void *arg);

/**
 * Ends a client at once. Prefer evlock_client_close(), which gives back everything, and reports whether it did.
 *
 * What is held is released, as far as the sockets take the commands without waiting. Nobody waits for the answers. A
 * key is left to its ttl where the command could not be sent. The server is asked not to answer (CLIENT REPLY OFF),
 * since it stops reading at an answer that finds nobody. A key is left to its ttl, too, where the server had not read
 * the command yet, and something was unanswered or the user may not use CLIENT.
 *
 * Pending calls and runs report EVLOCK_ECANCELLED on the next turn of the loop. So give the loop a turn before you free
 * it: event_base_loop(base, EVLOOP_NONBLOCK). With no call pending, everything is gone when this returns. A close that
 * is under way is overtaken: its callback reports EVLOCK_ECANCELLED. Handles stay the user's, to be freed before or
 * after. NULL is allowed. A forked child may free its copy.
 */
EVLOCK_EXPORT void evlock_client_free(evlock_client *client);

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

/**
 * How an acquire waits for a lock that another holds.
 *
 * EVLOCK_WAIT_POLL tries again after each retry_delay_ms. It needs nothing on the server but the lock's own key. It
 * works with any number of nodes, and is what other clients do. But chance decides who comes first, and a free lock
 * lies idle until somebody looks.
 *
 * EVLOCK_WAIT_QUEUE takes turns. The first attempt is the same. If another holds the lock, the acquire joins a queue
 * that the server keeps beside the lock. It is for all processes, in the order in which they come. A release grants the
 * lock to the first waiter in the same step, and the server reports it. That waiter is the holder without sending
 * anything.
 *
 *   - A waiter whose connection is gone is passed over. A waiter whose process is stopped is not: it holds the lock for
 *     its ttl. A waiter that was asking when its connection ended, or that was refused, joins again at the end.
 *   - While all holders release by handles of this kind, nobody slips in between.
 *   - Foreign holders, and handles that poll, exclude the queue's handles and are excluded by them. But their releases
 *     report to nobody. So the first waiter looks after every ten retry_delay_ms (100 ms to 5 s). It looks when the
 *     holder's ttl ends, too, since the holder may have crashed. The other waiters look more rarely: at least every
 *     5 s, or every 30 s where thousands wait ahead.
 *
 * It needs a single node and a ttl, else EVLOCK_EQUEUE. It needs rights on a second key and on a channel, see
 * docs/protocol.md. The first wait of a client opens a second connection, which listens for grants. While that
 * connection is away, waiters poll. There are no attempts to count: the wait ends by max_wait_ms. With max_attempts
 * EVLOCK_TRY an acquire is a try.
 */
enum evlock_wait {
    EVLOCK_WAIT_POLL = 0,  /**< try again after a pause */
    EVLOCK_WAIT_QUEUE = 1, /**< wait in line; the release hands the lock over */
};

/* --- The lock: options and life ----------------------------------------------------------------------------------- */

/** Options of a lock; see EVLOCK_OPTIONS(). Strings are copied. Times are in milliseconds, ten years at most. */
typedef struct evlock_options {
    size_t size;           /**< of this struct; EVLOCK_OPTIONS() sets it */
    int64_t ttl_ms;        /**< the length of the lease; default 30,000. With EVLOCK_NO_EXPIRY there is no deadline, and
                                nothing can be lost in time; a holder that dies holds for ever: rarely right */
    bool auto_renewal;     /**< The lease is renewed until it is released. Without renewal, renewal_interval_ms and
                                max_hold_ms do nothing, and on_at_risk is never called. evlock_hold() always renews */
    bool fence;            /**< every acquire draws a fence, see evlock_fence() */
    bool fail_when_away;   /**< An acquire waits for a lock that another holds, and not for the server. It ends at once
                                with EVLOCK_EUNREACHABLE, EVLOCK_EREFUSED or EVLOCK_EAUTH. With several nodes it ends
                                with EVLOCK_EQUORUM while too few of them are connected. A client that still connects
                                for the first time is waited for */
    uint8_t reserved;      /**< zero */
    enum evlock_wait wait; /**< how to wait for a lock that another holds; default EVLOCK_WAIT_POLL, which works with
                                every client and every server */
    int64_t max_wait_ms;   /**< how long an acquire may take; default EVLOCK_UNLIMITED */
    int64_t max_attempts;  /**< how many attempts it may make, the first included; default EVLOCK_UNLIMITED; EVLOCK_TRY:
                                one attempt, however long the server takes for it */
    int64_t retry_delay_ms;      /**< the pause between two attempts; default 100 */
    int64_t retry_jitter;        /**< how much of a pause is random, in percent: each is drawn from
                                      [delay * (100 - jitter) / 100, delay]; 1 to 100; default 50; EVLOCK_NO_JITTER */
    int64_t renewal_interval_ms; /**< from one renewal to the next, or up to a twentieth less, so that many come
                                      together; default ttl / 3 */
    int64_t max_hold_ms;         /**< Renewal ends when this time has passed since the grant, for holders that hang. The
                                      lease ends with the ttl that it has then. Default EVLOCK_UNLIMITED */
    int64_t at_risk_percent;     /**< on_at_risk is called when a due renewal is not confirmed and less than this share
                                      of the ttl is left; 1 to 99; default 33. A renewal that has just been sent is
                                      given a quarter of what is left first. If the share is lost_lead_ms or less, the
                                      loss comes instead */
    int64_t lost_lead_ms;        /**< The lease ends, and on_lost is called, this long before the deadline, in the first
                                      turn of the loop. A lead of N ms covers a loop that is N ms late. Less than
                                      ttl - drift; with renewal, less than the interval leaves of that. Default 1, or a
                                      twentieth of the ttl if that is less; EVLOCK_NO_LEAD */
    int64_t node_timeout_ms;     /**< with several nodes: how long an attempt that has no quorum waits for a node's
                                      answer; default ttl / 10 */
    int64_t min_replicas; /**< A grant counts only when this number of replicas has it too (WAIT, on a connection of
                               its own). With several nodes, this number of replicas of each node of a quorum. It
                               needs a ttl. Default none. A replica that is promoted goes by its own clock. If that
                               clock is ahead of the old primary's, the lock expires too early, by as much */
    int64_t replica_timeout_ms; /**< how long the replicas may take for that; less than command_timeout_ms. Default
                                     ttl / 10, or half of command_timeout_ms if that is less */
    const char *holder;         /**< who holds the lock, for others to read by evlock_query(): 1 to 91 bytes, such as
                                     a host and a process. It becomes the beginning of random tokens. Default none */
    const char *prefix;         /**< put before the name to make the key; default none */
    const char *label;          /**< what logs call this lock, unprintable bytes as \xXX; default the name */
    evlock_cb on_lost;          /**< a lease ended other than by release; may be NULL. The status is the reason:
                                     EVLOCK_EEXPIRED, EVLOCK_ENOTOWNED, EVLOCK_EDATALOSS or EVLOCK_EMAXHOLD. Losses are
                                     reported before the ends of calls that are due at the same time. Say two handles
                                     lose their leases at once, and the first one's on_lost acquires with the second.
                                     Then the second's on_lost comes after that call and before its callback */
    evlock_cb on_at_risk;       /**< a lease is in danger, see at_risk_percent; may be NULL. It is still held, and
                                     evlock_remaining_ms() of it are left. The status is why the last attempt to renew
                                     it failed; EVLOCK_EUNREACHABLE where none was answered. On several nodes it is
                                     EVLOCK_EQUORUM: too few of them confirmed */
    void *arg;                  /**< for on_lost and on_at_risk */
    int64_t max_passes;         /**< how many times in a row a lease may be passed on to other handles of this client,
                                     1 to 65,535; see PASSING. It needs a ttl. Default none: in a queue, all
                                     processes then take strict turns */
    int64_t max_pass_ms;        /**< and for how long, from the server's grant; default the ttl. It needs max_passes */
} evlock_options;

/*
 * PASSING. Say a hundred requests of one server wait for one lock. With max_passes the lease goes from one to the next
 * inside evlock_release() or evlock_free(), and no server is asked. The bound is for other processes. After max_passes
 * passes in a row, or after max_pass_ms, a release gives the lock back to the server. The client's handles then stand
 * in line behind the other processes. If they poll, they first leave the lock alone for one retry_delay_ms. They do so
 * even if nobody else wants it, which nobody can know. So short work goes faster in a queue.
 *
 * Handles of one client wait as a group if they have the same name and the same options. The options of the acquire
 * count, too. Only label, arg, callbacks, max_wait_ms and the pauses between attempts may differ. The group waits as
 * one. It makes one attempt at a time, or has one place in the queue. So a process that is stopped costs the others one
 * ttl, however many of its handles wait. In the group, the handle that came first is first. While one of the group
 * holds, the others wait for that one. fail_when_away ends their wait only when the group asks the server again. An
 * acquire with a token of its own or with max_attempts waits by itself. So does evlock_hold().
 *
 * The new holder gets the lease as it is, with the same token. Half of the ttl or more is left. If less than three
 * quarters are, a renewal is sent at once, also without auto_renewal. max_hold_ms and the statistics count from the
 * pass. The replicas of min_replicas confirm a lease before it is passed on. They are not asked again. So without
 * auto_renewal, a pass does not renew what they confirmed.
 *
 * One turn of the loop may report up to 64 leases that are passed on in it. So short holds do not take a turn each.
 * Losses and deadlines come before each of them. What else is asked for in a callback is reported in a later turn.
 *
 * With `fence` each holder has a fence of its own, which is greater than the last. A grant draws one for each handle
 * that waits when it is asked for. Only to these is the lease passed on.
 *
 * A release that passes the lease on reports EVLOCK_OK by the deadline alone. No server was asked. Say another client
 * breaks the lock, or the server loses its data. Then the lease may be passed on for up to a quarter of its ttl, or
 * half of it where a pass does not renew. Each of those holders believes that it holds. A renewal finds the loss, and
 * the handle that has the lease then gets the report. After a break by this client itself, the next release asks the
 * server.
 *
 * These leases are released, and not passed on:
 *   - one whose user asked for the token, or extended it
 *   - one that is at risk, or was not renewed as it should
 *   - one that was adopted, or has a token of the caller's own
 * Nothing is passed on by evlock_client_close(), by evlock_client_free() or in a forked child.
 */

/**
 * Makes a handle for the lock called `name`. Nothing is sent. Any number of handles may name one lock: they exclude
 * each other, as those of strangers do. `options` may be NULL. `*ret_lock` is set on success only.
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_EVERSION, EVLOCK_ENAME, EVLOCK_ETTL, EVLOCK_ERETRY (only where both the
 * delay and the ttl were set), EVLOCK_ERENEWAL, EVLOCK_EQUEUE, EVLOCK_EHOLDER, EVLOCK_ECLOSED, EVLOCK_EFORKED,
 * EVLOCK_ENOMEM.
 */
EVLOCK_EXPORT int evlock_new(evlock **ret_lock, evlock_client *client, const void *name, size_t name_len,
                             const evlock_options *options);

/**
 * Frees a handle. What it holds is released in the background, or passed on; see PASSING of evlock_options. Pending
 * calls report EVLOCK_ECANCELLED on a later turn of the loop. on_lost and on_at_risk are not called any more. NULL is
 * allowed. A forked child may free its copy.
 */
EVLOCK_EXPORT void evlock_free(evlock *lock);

/** The lock's name, without its prefix, with a NUL behind it. `ret_len` may be NULL. It is valid as long as the handle.
 *  NULL for NULL. */
EVLOCK_EXPORT const void *evlock_name(const evlock *lock, size_t *ret_len);

/* --- Acquire and release ------------------------------------------------------------------------------------------ */

/** What one acquire may want otherwise than its lock; see EVLOCK_ACQUIRE_OPTIONS(). Zero: as the lock's options say. */
typedef struct evlock_acquire_options {
    size_t size;                         /**< of this struct; EVLOCK_ACQUIRE_OPTIONS() sets it */
    int64_t max_wait_ms;                 /**< as in evlock_options */
    int64_t max_attempts;                /**< as in evlock_options */
    int64_t retry_delay_ms;              /**< as in evlock_options; EVLOCK_ERETRY if it is longer than the lock's ttl */
    enum evlock_override fence;          /**< as in evlock_options */
    enum evlock_override fail_when_away; /**< as in evlock_options */
    const void *token; /**< The caller's own token, for every attempt; default: a random one for each. An attempt waits
                            while an earlier use of the token by this client can still run, or a break of this client's
                            that found it. It waits for command_timeout_ms at most. Then the attempt has failed with
                            EVLOCK_EREFUSED. (One node of several that is away with something unanswered is enough.) A
                            random token never waits. Never give one token to two handles at a time */
    size_t token_len;  /**< 1 to EVLOCK_TOKEN_MAX, or EVLOCK_CSTRING */
} evlock_acquire_options;

/**
 * Acquires the lock. It makes an attempt. While another holds the lock or the server is away, it pauses and tries
 * again, until max_attempts or max_wait_ms is used up. It gives up before a pause that would last to the end of its
 * wait, or longer. When its wait ends in the middle of an attempt, it reports at once, and the attempt is undone in the
 * background. An attempt whose outcome is unknown is always undone. An acquire on a handle whose lease was lost gives
 * that lease up first. An acquire that has failed leaves the handle free, even before its callback comes. Another
 * acquire is accepted then. The callbacks come in the order of the calls.
 *
 * `options` may be NULL; `cb` may be NULL. The callback's status:
 *   EVLOCK_OK            held; evlock_remaining_ms() of it are left
 *   EVLOCK_EHELD         the attempts are used up and another holds it
 *   EVLOCK_ETIMEDOUT     the wait ended; evlock_last_error() says what stood in the way last
 *   EVLOCK_EUNREACHABLE, EVLOCK_EREFUSED   the attempts are used up, the last for this reason; or fail_when_away is set
 *   EVLOCK_EAUTH, EVLOCK_ECERT, EVLOCK_EPERM, EVLOCK_EWRONGTYPE, EVLOCK_EUNSUPPORTED   at once: waiting is no use
 *                        (EVLOCK_EWRONGTYPE on one node; among several, what is not a lock counts as a holder). With
 *                        on_login or password_file, EVLOCK_EAUTH is as EVLOCK_EUNREACHABLE
 *   EVLOCK_EPROTOCOL     twice in a row: a server that makes no sense once is asked once more, if attempts are left
 *   EVLOCK_EQUORUM       the attempts are used up, and too few nodes agreed
 *   EVLOCK_EREPLICAS     the attempts are used up, and too few replicas confirmed the last
 *   EVLOCK_EFENCE        at once: the fence went backwards, so the server has lost more than it may; or its counter is
 *                        no number, or more than a year ahead of its clock
 *   EVLOCK_ESYSTEM       at once: the system refuses random bytes, and a token is never made without
 *   EVLOCK_ECANCELLED, EVLOCK_ENOMEM
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_EVERSION, EVLOCK_ETOKEN, EVLOCK_ERETRY, EVLOCK_EQUEUE (attempts to count in
 * a queue), EVLOCK_EALREADY, EVLOCK_ECLOSED, EVLOCK_EFORKED, EVLOCK_ENOMEM, EVLOCK_ESYSTEM.
 */
EVLOCK_EXPORT int evlock_acquire(evlock *lock, const evlock_acquire_options *options, evlock_cb cb, void *arg);

/**
 * Holds the lock for ever, and reports when it is held and when it is not: for a leader, or a job that runs once. It
 * acquires with the lock's way of waiting, renews, and acquires again after each loss. The lock's max_attempts,
 * max_wait_ms and fail_when_away do not count. The lease is renewed whatever auto_renewal says; a lock without expiry
 * needs no renewal.
 *
 * No trouble ends a hold, not even a wrong password. A refusal that an acquire would end with is waited out. The pauses
 * are then the client's: they grow from backoff_min_ms to backoff_max_ms. evlock_release() ends a hold at any time, and
 * gives the lock up. So do evlock_free(), evlock_client_close() and evlock_client_free(); a close hands the lock over
 * at once. evlock_cancel() ends a hold that waits. evlock_export() ends it and hands the lease out.
 *
 * `cb` is required. It is called for each change, from the loop:
 *   EVLOCK_OK            held from now on; evlock_remaining_ms() of the lease are left
 *   EVLOCK_EHELD         another holds the lock, or has it at last after a trouble; the hold waits
 *   EVLOCK_EEXPIRED, EVLOCK_ENOTOWNED, EVLOCK_EDATALOSS, EVLOCK_EMAXHOLD   lost, for this reason. The hold acquires
 *                        again already. `on_lost` is not called; `on_at_risk` is
 *   EVLOCK_EUNREACHABLE, EVLOCK_EREFUSED, EVLOCK_EAUTH, EVLOCK_EPERM, EVLOCK_EWRONGTYPE, EVLOCK_EUNSUPPORTED,
 *   EVLOCK_EPROTOCOL, EVLOCK_EQUORUM, EVLOCK_EREPLICAS, EVLOCK_EFENCE, EVLOCK_ENOMEM, EVLOCK_ESYSTEM   this stands in
 *                        the way now; evlock_last_error() has the details. The hold goes on
 *   EVLOCK_ECANCELLED    the end, exactly once; nothing comes after it. The handle is NULL if it was freed
 * The same status is never reported twice in a row, however many attempts fail. While one is held back by a callback,
 * only the newest counts. A hold that is at work in a forked child reports nothing there.
 *
 * While it holds, all calls for a held lock work as ever. max_hold_ms is the longest term. After it renewal ends, and
 * the lease is lost with EVLOCK_EMAXHOLD. The hold then acquires again, in a queue behind those that wait.
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (also: no callback), EVLOCK_EALREADY, EVLOCK_ERENEWAL (the ttl and lost_lead_ms
 * leave no time to renew), EVLOCK_ECLOSED, EVLOCK_EFORKED, EVLOCK_ENOMEM, EVLOCK_ESYSTEM.
 */
EVLOCK_EXPORT int evlock_hold(evlock *lock, evlock_cb cb, void *arg);

/**
 * Cancels the handle's pending acquire or adoption, or its hold that waits. It reports EVLOCK_ECANCELLED, and the lock
 * is not held. This is so, too, where the lock has just been granted, but the callback was not yet called. The handle
 * is free for the next acquire at once. The wait of a run ends alike, and its `done` reports that. A run whose body was
 * called goes on.
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_ENOTHELD (none was pending), EVLOCK_ECLOSED, EVLOCK_EFORKED.
 */
EVLOCK_EXPORT int evlock_cancel(evlock *lock);

/**
 * Releases: the server compares the token and deletes the key in one step. From the moment of this call nothing is
 * renewed, evlock_is_held() is false, and no loss is reported. Pending extensions report EVLOCK_ECANCELLED. When the
 * callback has come, the handle is free for a new acquire. After a loss was reported, release may still be called, and
 * sends the same. On a run's handle it ends the body, or the wait, and `done` comes after `cb`. `cb` may be NULL. The
 * callback's status:
 *   EVLOCK_OK            deleted
 *   EVLOCK_ENOTOWNED     it was not there any more; a new owner, if any, was not touched
 *   EVLOCK_ENOTHELD      a hold was waiting, and has ended; see evlock_hold(). Of a run: its body was not called yet,
 *                        or has handed the lease over
 *   EVLOCK_EUNREACHABLE, EVLOCK_EREFUSED   not within command_timeout_ms; it goes on in the background
 *   EVLOCK_EPERM, EVLOCK_EWRONGTYPE, EVLOCK_EAUTH, EVLOCK_EUNSUPPORTED, EVLOCK_EPROTOCOL   not done
 *   EVLOCK_ECANCELLED    the handle or client was freed meanwhile; the release goes on in the background
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_ENOTHELD (nothing to release, or still acquiring: cancel that),
 * EVLOCK_EALREADY (a second release), EVLOCK_ECLOSED (but the body of a run may end while its client closes),
 * EVLOCK_EFORKED, EVLOCK_ENOMEM (never for a run where `cb` is NULL).
 */
EVLOCK_EXPORT int evlock_release(evlock *lock, evlock_cb cb, void *arg);

/**
 * The fence of the lease that the handle holds; 0 when it holds none or drew none. A fence is a number that is greater
 * than the fence of every earlier acquisition of the lock, through this or any other client. Pass it along with every
 * write to what the lock protects. Let the resource refuse a number that is smaller than the greatest it has seen. Then
 * a holder that was stopped beyond its ttl cannot do harm.
 *
 * The script that grants the lock draws the fence, from a counter beside the lock's key. The counter keeps up with the
 * server's clock, in microseconds. So a counter may be lost, or come back from an old copy of the data: it goes on
 * above every number drawn before. The clock must not be behind the one by which they were drawn. With several nodes,
 * the fence is the greatest number of the quorum, and a quorum has been given it before the acquire is reported. An
 * adopted lease has no fence.
 */
EVLOCK_EXPORT uint64_t evlock_fence(const evlock *lock);

/* --- Holding ------------------------------------------------------------------------------------------------------ */

/** True while the handle holds the lock and its deadline has not passed. It is exact, and costs a clock reading. */
EVLOCK_EXPORT bool evlock_is_held(const evlock *lock);

/** Milliseconds until the deadline, rounded down; 0 when not held; INT64_MAX for a lease without expiry. */
EVLOCK_EXPORT int64_t evlock_remaining_ms(const evlock *lock);

/**
 * How many nodes keep the lock until its deadline (less a millisecond), as far as is known. It is 0 when not held, 1 on
 * a single server, and a majority (`count / 2 + 1`) at least with several nodes. The nodes beyond the majority may
 * forget the lock, and still nobody else is granted it. A node that has forgotten it is counted until a renewal or an
 * extension finds that. The lock is put on the nodes that lack it: see QUORUM.
 */
EVLOCK_EXPORT size_t evlock_keepers(const evlock *lock);

/** Milliseconds since the pending acquire was called, or since a hold began to wait; 0 when neither waits. */
EVLOCK_EXPORT int64_t evlock_waited_ms(const evlock *lock);

/** What evlock_extend() does with its time. */
enum evlock_extend_mode {
    EVLOCK_EXTEND_ADD = 0,     /**< adds it to what is left on the server */
    EVLOCK_EXTEND_REPLACE = 1, /**< what is left becomes this, longer or shorter than it was */
    EVLOCK_EXTEND_RESET = 2,   /**< what is left becomes the lock's own ttl; the time given is 0 */
};

/**
 * Extends a held lease: by `ms` (1 or more) with EVLOCK_EXTEND_ADD, or to `ms` with EVLOCK_EXTEND_REPLACE. There, `ms`
 * is a ttl: longer than its drift and lost_lead_ms. With EVLOCK_EXTEND_RESET the lease is extended to the lock's own
 * ttl, and `ms` is 0.
 *
 *   - The extensions of one handle are done one after the other, in order.
 *   - An extension that shortens moves the deadline in before it is sent. One that lengthens moves it out when the
 *     server has answered. One whose outcome is unknown never moves it out.
 *   - No answer moves the deadline out by more than was asked for, also where the key lives longer than that.
 *   - Automatic renewal goes on. It does not lower a longer time. It brings a shorter one back to the lock's ttl.
 *
 * `cb` may be NULL. The callback's status:
 *   EVLOCK_OK            done
 *   EVLOCK_ENOTOWNED     the token is gone (on_lost has reported that)
 *   EVLOCK_ENOTTL        the key was made to last for ever, so there is nothing to add to. (Only on one node, and with
 *                        EVLOCK_EXTEND_ADD: the other modes give it an expiry again.)
 *   EVLOCK_ELOST         the lease was lost before an answer came
 *   EVLOCK_EUNREACHABLE  on one node: no answer within command_timeout_ms; it is not known whether it was done
 *   EVLOCK_EREFUSED, EVLOCK_EPERM, EVLOCK_EWRONGTYPE, EVLOCK_EAUTH, EVLOCK_EUNSUPPORTED, EVLOCK_EPROTOCOL   on one
 *                        node: not done
 *   EVLOCK_EQUORUM       on several nodes: too few confirmed it within command_timeout_ms, whatever stood in the way;
 *                        some may have done it
 *   EVLOCK_ECANCELLED    meanwhile the lease was released or exported, or the handle or client freed
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (an unknown mode, or a reset to other than 0), EVLOCK_ETTL (a time out of range),
 * EVLOCK_ENOTHELD, EVLOCK_ELOST, EVLOCK_ENOTTL (the lock has no ttl, or the lease none to add to),
 * EVLOCK_ECLOSED, EVLOCK_EFORKED, EVLOCK_ENOMEM.
 */
EVLOCK_EXPORT int evlock_extend(evlock *lock, int64_t ms, enum evlock_extend_mode mode, evlock_cb cb, void *arg);

/* --- The token ---------------------------------------------------------------------------------------------------- */

/**
 * The token of the lease that the handle holds; NULL when it holds none. It is valid until the lease ends. `ret_len`
 * may be NULL. The token is the proof of ownership: everyone who knows it can release the lock. Do not print it where
 * others read. From then on, scripts alone renew the lease.
 */
EVLOCK_EXPORT const void *evlock_token(const evlock *lock, size_t *ret_len);

/**
 * Hands the lease over. It copies the token into `token` (`size` bytes; EVLOCK_TOKEN_MAX is always enough), sets
 * `*ret_len`, and ends the lease on this handle silently. From then on this handle releases, renews and reports nothing
 * of that lease. Pending extensions report EVLOCK_ECANCELLED. Another handle adopts the lease by the token.
 *
 * EVLOCK_EALREADY is returned while an unanswered command could change the lease, of which its new holder could not
 * know. This is an extension that might shorten the lease, or a look at the queue that might join it once more. On
 * Valkey 8.1, Redis 8.4 and later ones it may be a renewal, too: it sets the ttl there. Try again a little later. If
 * the command was lost and its connection cannot be killed, that is a ttl later.
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (also: `size` is too small), EVLOCK_ENOTHELD, EVLOCK_ELOST, EVLOCK_EALREADY,
 * EVLOCK_ECLOSED, EVLOCK_EFORKED.
 */
EVLOCK_EXPORT int evlock_export(evlock *lock, void *token, size_t size, size_t *ret_len);

/**
 * Takes over a lease by its token. The token may come from another handle, loop, thread or process, of evlock or of any
 * client that keeps plain-string locks. The server is asked whether the token is there, and for how long. The deadline
 * counts from that: for ten years at most, and with several nodes for max_ttl_ms, since nobody here knows what was
 * asked for. On a single node, a key without expiry gives a lease without a deadline.
 *
 * From then on the lease is as if it was acquired here. It is extended, renewed by this handle's options, released, and
 * reported when it is lost. An adoption that fails or is cancelled leaves the lease as it is, also where this very
 * handle had lost it. There is one exception. An unanswered extension or look at the queue of the lost lease might
 * still change it unseen. Then the lease is released, and not adopted.
 *
 * `cb` may be NULL. The callback's status:
 *   EVLOCK_OK            held
 *   EVLOCK_ENOTOWNED     the token is not there, or not for long enough
 *   EVLOCK_EUNREACHABLE, EVLOCK_EREFUSED, EVLOCK_EAUTH, EVLOCK_EPERM, EVLOCK_EWRONGTYPE, EVLOCK_EUNSUPPORTED,
 *   EVLOCK_EPROTOCOL, EVLOCK_EQUORUM, EVLOCK_ECANCELLED
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_ETOKEN, EVLOCK_EALREADY, EVLOCK_ECLOSED, EVLOCK_EFORKED, EVLOCK_ENOMEM.
 */
EVLOCK_EXPORT int evlock_adopt(evlock *lock, const void *token, size_t token_len, evlock_cb cb, void *arg);

/* --- Answered by the server --------------------------------------------------------------------------------------- */

/** What evlock_query() asks for. Add up any number of them. */
enum evlock_query {
    EVLOCK_QUERY_LOCKED = 1,   /**< whether anyone holds the lock */
    EVLOCK_QUERY_OWNED = 2,    /**< whether the server has this handle's token */
    EVLOCK_QUERY_TTL = 4,      /**< how long the lock's key will live, whoever holds it */
    EVLOCK_QUERY_HOLDER = 8,   /**< who holds the lock, by the name that the holder gave itself */
    EVLOCK_QUERY_WAITERS = 16, /**< how many wait in the lock's queue; on a single node */
    EVLOCK_QUERY_PLACE = 32,   /**< where in that queue this handle waits; on a single node */
};

/** What a query learned. A field that was not asked for is false, 0 or "". Later versions append fields. */
typedef struct evlock_answer {
    bool locked;         /**< somebody holds the lock */
    bool owned;          /**< the server has the token of this handle; false for a handle without a token */
    uint8_t reserved[6]; /**< zero */
    int64_t ttl_ms;      /**< what the key has left, 1 or more; EVLOCK_NO_EXPIRY; 0 when nobody holds the lock */
    const char *holder;  /**< the holder's option `holder`, with a NUL behind it. "" when nobody holds the lock, or the
                              holder gave no name, as clients other than evlock do. Anyone can write any name */
    size_t holder_len;   /**< its length in bytes */
    int64_t waiters; /**< all processes' waiters, with those that have gone and were not yet passed over. Waiters that
                          poll are not in the queue, and not counted. Handles that wait as a group count as one, see
                          PASSING of evlock_options */
    int64_t place;   /**< the handle's, or its group's. 1 is next; 0: it does not wait, has not joined yet, or has
                          just been granted the lock */
} evlock_answer;

/** The end of a query. `answer` is NULL unless `status` is EVLOCK_OK. It and its holder are valid during the call. */
typedef void (*evlock_query_cb)(evlock *lock, int status, const evlock_answer *answer, void *arg);

/**
 * Asks the server about the lock: `what` is one or more of enum evlock_query, added up. The handle may hold the lock or
 * not, and may ask any number of queries at a time. What is asked for together is answered together, as it was at one
 * moment, on several nodes at one moment on each. So an answer never contradicts itself.
 *
 * A query that is made while the client connects waits for that, for connect_timeout_ms at most. When the server is
 * away, the query fails at once. Its answer is waited for as long as the connection is, see command_timeout_ms. When
 * the connection breaks, the query is sent once more. What the handle itself knows is not asked: EVLOCK_QUERY_OWNED of
 * a handle without a token, and EVLOCK_QUERY_PLACE of one that does not wait. If nothing else is asked for, nothing is
 * sent, and the callback comes on the next turn of the loop.
 *
 * On several nodes, a majority decides. The lock is held where a majority has the same token, and the answer's ttl is
 * for how long a majority keeps that. EVLOCK_QUERY_TTL alone counts each node's key, whatever its token is. `cb` must
 * not be NULL. The callback's status:
 *   EVLOCK_OK            answered, also when nobody holds the lock
 *   EVLOCK_EWRONGTYPE    the key, or the queue's key, holds something else; EVLOCK_QUERY_TTL alone does not see that
 *   EVLOCK_EUNREACHABLE, EVLOCK_EREFUSED, EVLOCK_EAUTH, EVLOCK_EPERM, EVLOCK_EUNSUPPORTED, EVLOCK_EPROTOCOL,
 *   EVLOCK_EQUORUM, EVLOCK_ENOMEM
 *                        not answered
 *   EVLOCK_ECANCELLED    the handle or client was freed or closed meanwhile
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (also: no callback; `what` is 0, or has a bit that this library does not know),
 * EVLOCK_EQUEUE (EVLOCK_QUERY_WAITERS or EVLOCK_QUERY_PLACE, on several nodes), EVLOCK_ECLOSED, EVLOCK_EFORKED,
 * EVLOCK_ENOMEM.
 */
EVLOCK_EXPORT int evlock_query(evlock *lock, unsigned what, evlock_query_cb cb, void *arg);

/**
 * Breaks the lock: gives it up by force, whoever holds it. It reads the token that it finds, and then compares and
 * deletes that one. So a late break cannot end the next holder. A foreign client may have put a string of any length
 * there. What is no string is left alone (EVLOCK_EWRONGTYPE). The holder learns of the break when it next renews or
 * releases. A token of the caller's own that is used again is the same holder to a break. A break by another client
 * that is under way meanwhile may end the later lease.
 *
 * With several nodes, a break reports when a quorum is done with it. It goes on with the others that have been asked. A
 * node may keep the token if it is away, or has no room for a command (see max_inflight). A holder that renews sets its
 * token again on the nodes where it is gone. So the holder may keep the lock although EVLOCK_OK is reported, if some
 * nodes are slow. This is so if the break reaches the last node of a quorum later than the first, by more than the
 * holder's renewal interval. (For a lease that is extended and not renewed, this is an eighth of the ttl.) Then a query
 * finds it locked, and the holder's on_lost does not come: break it again.
 *
 * It waits for the connection, and is sent once more, as a query is. `cb` may be NULL. The callback's status:
 *   EVLOCK_OK            it was broken
 *   EVLOCK_ENOTHELD      nobody held it
 *   EVLOCK_ENOTOWNED     its holder changed in between
 *   else                 as for evlock_query()
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_ECLOSED, EVLOCK_EFORKED, EVLOCK_ENOMEM.
 */
EVLOCK_EXPORT int evlock_break(evlock *lock, evlock_cb cb, void *arg);

/** A name that evlock_client_list() found: any bytes, with a NUL behind them. */
typedef struct evlock_string {
    const char *data; /**< the bytes */
    size_t len;       /**< how many, without the NUL */
} evlock_string;

/** Where a listing goes on. All zero is its beginning. What it holds is the library's. */
typedef struct evlock_cursor {
    uint64_t position; /**< in a node's keys */
    uint32_t node;     /**< which node */
    uint32_t missed;   /**< how many nodes before it did not answer */
} evlock_cursor;

/** Some of the names that a listing finds. Later versions append fields. */
typedef struct evlock_page {
    const evlock_string *names; /**< in no order */
    size_t count;               /**< of names; may be 0, also where more follow */
    bool more;                  /**< the listing has not ended: call again, from `next` */
    uint8_t reserved[7];        /**< zero */
    evlock_cursor next;         /**< where it goes on */
} evlock_page;

/**
 * The end of one step of a listing. `client` is NULL if evlock_client_free() ended it meanwhile. `page` is NULL unless
 * `status` is EVLOCK_OK. It and its names are valid during the call.
 */
typedef void (*evlock_list_cb)(evlock_client *client, int status, const evlock_page *page, void *arg);

/**
 * Lists the locks that are held and whose names begin with `prefix`, some at a time. `from` is NULL for the first call,
 * and the last page's `next` for each call after it, as long as the page says `more`. The prefix is the same in all of
 * them, and may be empty.
 *
 * A call is one step: the server looks at some 500 of its keys (SCAN), and does other work between two steps. So a
 * listing takes as many steps as the database has keys, whatever the prefix. A program that wants no more stops.
 *
 *   - A lock that is held from the first call to the last is reported at least once, and may be reported twice. One
 *     that is acquired or released meanwhile may be reported or not.
 *   - A name is the whole key: what the option `prefix` puts before a lock's name is a part of it.
 *   - Other programs' strings are reported too, where their names are of a lock's length. evlock's own counters, queues
 *     and marks are not.
 *   - If the server is replaced or loses its data between two steps, locks may be missing.
 *   - Of a cluster, all masters are listed, one after the other. If slots move meanwhile, locks may be missing.
 *
 * On several nodes, the nodes are listed one after the other, and most names are reported by each. A node that does not
 * answer is left out, while a majority of the nodes answers. So every lock that is held is reported by one at least. A
 * name may be that of a lock that no majority has: evlock_query() says.
 *
 * A call waits for the connection, and is sent once more, as a query is. `cb` must not be NULL. The callback's status:
 *   EVLOCK_OK            one page
 *   EVLOCK_EUNREACHABLE, EVLOCK_EREFUSED, EVLOCK_EAUTH, EVLOCK_EPERM, EVLOCK_EUNSUPPORTED, EVLOCK_EPROTOCOL,
 *   EVLOCK_EQUORUM, EVLOCK_ENOMEM
 *                        not answered; the same step may be asked for again
 *   EVLOCK_ECANCELLED    the client was freed or closed meanwhile
 *
 * Returns EVLOCK_OK, EVLOCK_EINVAL (also: no callback; a cursor of another client), EVLOCK_ENAME (the prefix is longer
 * than 512 bytes), EVLOCK_ECLOSED, EVLOCK_EFORKED, EVLOCK_ENOMEM.
 */
EVLOCK_EXPORT int evlock_client_list(evlock_client *client, const void *prefix, size_t prefix_len,
                                     const evlock_cursor *from, evlock_list_cb cb, void *arg);

/* --- Runs: acquire, work, release --------------------------------------------------------------------------------- */

/**
 * Work under a lock: the body of a run. It is called once, when the lock is held, from the loop. It may begin work that
 * takes many turns of the loop. Before each step that matters it asks evlock_is_held(); on_lost reports a loss.
 *
 * EVLOCK_OK as its value says that the work has begun. The body then ends by evlock_release(lock, ...), at any time: in
 * the body itself, or later, also after a loss. Each body must end by that, or the run goes on for ever. Any other
 * value says that the work could not begin. The run then releases the lock by itself, and `done` reports the value.
 * Values of the program's own are positive; evlock_strerror() has no words for them.
 *
 * Until the run has ended, its handle serves no other acquire, adoption or run: EVLOCK_EALREADY. A body may hand its
 * lease over by evlock_export(); it ends by evlock_release() all the same, and `done` reports EVLOCK_ENOTHELD.
 */
typedef int (*evlock_body)(evlock *lock, void *arg);

/**
 * The end of a run: the lock is released, or was never held. `ran` says whether the body was called, whatever it
 * returned. The statuses:
 *   EVLOCK_OK         the body ran, the lock was held until the body's end, and it is released
 *   EVLOCK_ELOST      the body ran, and the lease was lost before the body's end, or was gone at the release
 *   EVLOCK_ECANCELLED the wait was ended by evlock_cancel(), evlock_release() or evlock_client_close(); or the handle
 *                     or the client was freed; or a client that closes waits no longer
 *   else              without the body (`ran` is false): why the lock was not acquired, as for evlock_acquire();
 *                     after the body (`ran` is true): the value that the body returned; or else why the release
 *                     is not confirmed, as for evlock_release()
 *
 * With EVLOCK_ECANCELLED and `ran`, the body may not have ended. What still works for it stops here, for it must not
 * use the handle any more. The lock is released in the background.
 */
typedef void (*evlock_done_cb)(int status, bool ran, void *arg);

/**
 * Runs `body` under `lock`: acquires it by its own options, calls the body, and calls `done` when the lock is released
 * after the body's end. `done` may be NULL. While the run waits, evlock_cancel() and evlock_release() end it. Once the
 * body was called, evlock_release() ends the body. A callback that is given to evlock_release() comes before `done`.
 * evlock_free() of the handle ends the run at any time: `done` reports EVLOCK_ECANCELLED, later, from the loop.
 *
 * evlock_client_close() ends runs that wait, and lets bodies end. Returns as evlock_acquire() without options.
 */
EVLOCK_EXPORT int evlock_with(evlock *lock, evlock_body body, evlock_done_cb done, void *arg);

/**
 * Does all in one call: makes a handle, runs `body` under it as evlock_with() does, and frees the handle after `done`.
 * `*ret_lock` is that handle, set on success only; `ret_lock` may be NULL. The handle is valid until `done` has
 * returned. It may be freed before, as a handle of one's own: that ends the run.
 *
 * A run makes 4 attempts, unless `options` set max_attempts, max_wait_ms or max_passes, or wait in a queue. A wait that
 * is set is then the only limit. Returns as evlock_new() and evlock_acquire().
 */
EVLOCK_EXPORT int evlock_run(evlock **ret_lock, evlock_client *client, const void *name, size_t name_len,
                             const evlock_options *options, evlock_body body, evlock_done_cb done, void *arg);

/**
 * A lock's name for a function: its file and itself, such as "jobs.c:nightly". Two static functions of one name in two
 * files have different locks. The file is without its folder, so the name is the same wherever the program is built.
 * Compilers without __FILE_NAME__ (gcc before 12, clang before 9) give the file as it was named to them. A lock of a
 * function that never runs twice at once, on whatever machine:
 *
 *     evlock_run(NULL, client, EVLOCK_NAME_OF(nightly), EVLOCK_CSTRING, EVLOCK_OPTIONS(.max_wait_ms = 60000),
 *                nightly, on_done, NULL);
 */
#ifdef __FILE_NAME__
#define EVLOCK_NAME_OF(function) __FILE_NAME__ ":" #function
#else
#define EVLOCK_NAME_OF(function) __FILE__ ":" #function
#endif

/* --- Options as an argument --------------------------------------------------------------------------------------- */

#ifdef __cplusplus
}
#pragma GCC system_header /* else g++ -Wextra warns of each field that is left out */
/** The address of a struct of options; for the three macros below. */
#define EVLOCK_STRUCT_(type, ...) (&static_cast<const type &>(type{.size = sizeof(type), __VA_ARGS__}))
#else
/** The address of a struct of options; for the three macros below. */
#define EVLOCK_STRUCT_(type, ...) (&(const type){.size = sizeof(type), __VA_ARGS__})
#endif

/** Options of a lock as an argument: EVLOCK_OPTIONS(.ttl_ms = 2000, .auto_renewal = true). In C++20, in their order. */
#define EVLOCK_OPTIONS(...) EVLOCK_STRUCT_(evlock_options, __VA_ARGS__)
/** Options of an acquire as an argument: EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = 500). */
#define EVLOCK_ACQUIRE_OPTIONS(...) EVLOCK_STRUCT_(evlock_acquire_options, __VA_ARGS__)
/** Options of a client as an argument: EVLOCK_CLIENT_OPTIONS(.on_log = log_line). */
#define EVLOCK_CLIENT_OPTIONS(...) EVLOCK_STRUCT_(evlock_client_options, __VA_ARGS__)

#endif
