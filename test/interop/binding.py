"""evlock by ctypes, as a binding of another language has it: structs and calls declared by hand, and no helper in C.

It knows the header by heart, which test_ctypes.py compares with the header itself. libevent is the very one that evlock
uses: a library's handle finds the functions of the libraries that it stands on, too.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint
from ctypes import c_uint8, c_uint32, c_uint64, c_void_p

OK = 0
CSTRING = c_size_t(-1).value
EVLOOP_NONBLOCK = 2

CONSTANTS = {
    "EVLOCK_NODES_MAX": 15,
    "EVLOCK_TOKEN_MAX": 128,
    "EVLOCK_STATS_BUCKETS": 33,
    "EVLOCK_ADDRESS_SIZE": 112,
    "EVLOCK_PRODUCT_SIZE": 20,
    "EVLOCK_VERSION_SIZE": 24,
    "EVLOCK_TRY": 1,
    "EVLOCK_UNLIMITED": -1,
    "EVLOCK_NO_EXPIRY": -1,
    "EVLOCK_NO_JITTER": -1,
    "EVLOCK_NO_LEAD": -1,
    "EVLOCK_INHERIT": 0,
    "EVLOCK_ON": 1,
    "EVLOCK_OFF": 2,
    "EVLOCK_OK": 0,
    "EVLOCK_EHELD": -1,
    "EVLOCK_ETIMEDOUT": -2,
    "EVLOCK_ECANCELLED": -3,
    "EVLOCK_ENOTHELD": -4,
    "EVLOCK_ENOTOWNED": -5,
    "EVLOCK_EINVAL": -20,
    "EVLOCK_ECLOSED": -40,
    "EVLOCK_ETHREAD": -44,
    "EVLOCK_EVERSION": -45,
    "EVLOCK_LOG_DEBUG": 1,
    "EVLOCK_LOG_INFO": 2,
    "EVLOCK_LOG_WARN": 3,
    "EVLOCK_LOG_ERROR": 4,
    "EVLOCK_CONNECTING": 1,
    "EVLOCK_CONNECTED": 2,
    "EVLOCK_AWAY": 3,
    "EVLOCK_WAIT_POLL": 0,
    "EVLOCK_WAIT_QUEUE": 1,
    "EVLOCK_EXTEND_ADD": 0,
    "EVLOCK_EXTEND_REPLACE": 1,
    "EVLOCK_EXTEND_RESET": 2,
    "EVLOCK_QUERY_LOCKED": 1,
    "EVLOCK_QUERY_OWNED": 2,
    "EVLOCK_QUERY_TTL": 4,
    "EVLOCK_QUERY_HOLDER": 8,
    "EVLOCK_QUERY_WAITERS": 16,
    "EVLOCK_QUERY_PLACE": 32,
}
globals().update({name[len("EVLOCK_") :]: value for name, value in CONSTANTS.items()})


class Answer(Structure):
    _fields_ = [
        ("locked", c_bool),
        ("owned", c_bool),
        ("reserved", c_uint8 * 6),
        ("ttl_ms", c_int64),
        ("holder", c_char_p),
        ("holder_len", c_size_t),
        ("waiters", c_int64),
        ("place", c_int64),
    ]


# Handles are bare pointers. NULL, such as the handle that was freed, is None.
Callback = CFUNCTYPE(None, c_void_p, c_int, c_void_p)
QueryCallback = CFUNCTYPE(None, c_void_p, c_int, POINTER(Answer), c_void_p)
ConnectionCallback = CFUNCTYPE(None, c_void_p, c_int, c_int, c_void_p)
LoginCallback = CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)
LogCallback = CFUNCTYPE(None, c_int, c_char_p, c_void_p)
PostCallback = CFUNCTYPE(None, c_void_p, c_void_p)
ClosedCallback = CFUNCTYPE(None, c_int, c_void_p)
Body = CFUNCTYPE(c_int, c_void_p, c_void_p)
DoneCallback = CFUNCTYPE(None, c_int, c_bool, c_void_p)


class ClientOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("connect_timeout_ms", c_int64),
        ("command_timeout_ms", c_int64),
        ("backoff_min_ms", c_int64),
        ("backoff_max_ms", c_int64),
        ("max_inflight", c_int64),
        ("max_ttl_ms", c_int64),
        ("close_wait_ms", c_int64),
        ("log_level", c_int),
        ("durable", c_bool),
        ("distrust_uptime", c_bool),
        ("reserved", c_uint8 * 2),
        ("user", c_char_p),
        ("password", c_char_p),
        ("on_connection", ConnectionCallback),
        ("on_log", LogCallback),
        ("arg", c_void_p),
        ("reserved_pointer", c_void_p),
        ("connection_name", c_char_p),
        ("tls_ca", c_char_p),
        ("tls_cert", c_char_p),
        ("tls_key", c_char_p),
        ("tls_name", c_char_p),
        ("tls_context", c_void_p),
        ("password_file", c_char_p),
        ("on_login", LoginCallback),
        ("sentinel_user", c_char_p),
        ("sentinel_password", c_char_p),
        ("failover_wait_ms", c_int64),
    ]


class Options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ttl_ms", c_int64),
        ("auto_renewal", c_bool),
        ("fence", c_bool),
        ("fail_when_away", c_bool),
        ("reserved", c_uint8),
        ("wait", c_int),
        ("max_wait_ms", c_int64),
        ("max_attempts", c_int64),
        ("retry_delay_ms", c_int64),
        ("retry_jitter", c_int64),
        ("renewal_interval_ms", c_int64),
        ("max_hold_ms", c_int64),
        ("at_risk_percent", c_int64),
        ("lost_lead_ms", c_int64),
        ("node_timeout_ms", c_int64),
        ("min_replicas", c_int64),
        ("replica_timeout_ms", c_int64),
        ("holder", c_char_p),
        ("prefix", c_char_p),
        ("label", c_char_p),
        ("on_lost", Callback),
        ("on_at_risk", Callback),
        ("arg", c_void_p),
        ("max_passes", c_int64),
        ("max_pass_ms", c_int64),
    ]


class AcquireOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("max_wait_ms", c_int64),
        ("max_attempts", c_int64),
        ("retry_delay_ms", c_int64),
        ("fence", c_int),
        ("fail_when_away", c_int),
        ("token", c_char_p),
        ("token_len", c_size_t),
    ]


class NodeInfo(Structure):
    _fields_ = [
        ("connection", c_int),
        ("status", c_int),
        ("excluded_ms", c_int64),
        ("agreed", c_bool),
        ("reserved", c_uint8 * 7),
        ("missing", c_uint32),
        ("reserved_more", c_uint8 * 4),
        ("address", c_char * CONSTANTS["EVLOCK_ADDRESS_SIZE"]),
        ("product", c_char * CONSTANTS["EVLOCK_PRODUCT_SIZE"]),
        ("version", c_char * CONSTANTS["EVLOCK_VERSION_SIZE"]),
        ("persistence", c_int),
    ]


class Stats(Structure):
    _fields_ = [
        *[(name, c_uint64) for name in ("acquired", "waited", "handed", "failed", "released", "renewals")],
        *[(name, c_uint64) for name in ("lost_expired", "lost_not_owned", "lost_data", "lost_max_hold", "reconnects")],
        ("wait", c_uint64 * CONSTANTS["EVLOCK_STATS_BUCKETS"]),
        ("hold", c_uint64 * CONSTANTS["EVLOCK_STATS_BUCKETS"]),
        ("redirects", c_uint64),
        ("passed", c_uint64),
    ]


STRUCTS = {
    "evlock_answer": Answer,
    "evlock_client_options": ClientOptions,
    "evlock_options": Options,
    "evlock_acquire_options": AcquireOptions,
    "evlock_node_info": NodeInfo,
    "evlock_stats": Stats,
}
OPTIONS = (ClientOptions, Options, AcquireOptions)

PROTOTYPES = {
    "evlock_version": (c_char_p,),
    "evlock_options_init": (None, c_void_p, c_size_t),
    "evlock_strerror": (c_char_p, c_int),
    "evlock_status_name": (c_char_p, c_int),
    "evlock_last_error": (c_char_p,),
    "evlock_client_new_libevent": (c_int, POINTER(c_void_p), c_void_p, c_char_p, c_void_p),
    "evlock_client_move": (c_int, c_void_p),
    "evlock_client_post": (c_int, c_void_p, PostCallback, c_void_p),
    "evlock_client_login": (c_int, c_void_p, c_size_t, c_char_p, c_char_p),
    "evlock_client_node": (c_int, c_void_p, c_size_t, c_void_p, c_size_t),
    "evlock_client_connection": (c_int, c_void_p),
    "evlock_client_stats": (c_int, c_void_p, c_void_p, c_size_t),
    "evlock_client_close": (c_int, c_void_p, ClosedCallback, c_void_p),
    "evlock_client_free": (None, c_void_p),
    "evlock_new": (c_int, POINTER(c_void_p), c_void_p, c_char_p, c_size_t, c_void_p),
    "evlock_free": (None, c_void_p),
    "evlock_acquire": (c_int, c_void_p, c_void_p, Callback, c_void_p),
    "evlock_release": (c_int, c_void_p, Callback, c_void_p),
    "evlock_extend": (c_int, c_void_p, c_int64, c_int, Callback, c_void_p),
    "evlock_fence": (c_uint64, c_void_p),
    "evlock_is_held": (c_bool, c_void_p),
    "evlock_remaining_ms": (c_int64, c_void_p),
    "evlock_token": (c_void_p, c_void_p, POINTER(c_size_t)),
    "evlock_query": (c_int, c_void_p, c_uint, QueryCallback, c_void_p),
    "evlock_with": (c_int, c_void_p, Body, DoneCallback, c_void_p),
    "event_base_new": (c_void_p,),
    "event_base_loop": (c_int, c_void_p, c_int),
    "event_base_free": (None, c_void_p),
}


class Library:
    """The library, with its functions under their names."""

    def __init__(self, path):
        self.handle = ctypes.CDLL(path)
        for name, (returns, *takes) in PROTOTYPES.items():
            function = self.handle[name]
            function.restype, function.argtypes = returns, takes
            setattr(self, name, function)


class Loop:
    """A libevent base that Python turns, and a client on it. It keeps the callbacks that C may still call."""

    def __init__(self, library, url, options=None):
        self.library, self.kept = library, [options]
        self.base = library.event_base_new()
        self.client = c_void_p()
        given = byref(options) if options else None
        self.status = library.evlock_client_new_libevent(byref(self.client), self.base, url.encode(), given)

    def turn(self):
        assert self.library.event_base_loop(self.base, EVLOOP_NONBLOCK) >= 0

    def new(self, name, options=None):
        """The status of evlock_new(), and the handle."""
        self.kept.append(options)
        lock, name = c_void_p(), name.encode()
        given = byref(options) if options else None
        return self.library.evlock_new(byref(lock), self.client, name, len(name), given), lock

    def keep(self, kind, function):
        """A callback of this kind that lives as long as the loop."""
        self.kept.append(kind(function))
        return self.kept[-1]

    def free(self):
        if self.client:
            self.library.evlock_client_free(self.client)
        self.turn()
        self.library.event_base_free(self.base)


def zeroed(kind, **fields):
    """A struct of options that is all zero, but for its size and these fields."""
    return kind(size=ctypes.sizeof(kind), **fields)
