"""Other clients of the failover table: client.py WAY URL NAME TTL_MS does what believer.c does, on redis-py.

The ways are
- sentinel: redis-py's own Sentinel and Lock; its pool asks a sentinel at each connect;
- asks: a sentinel is asked at each connect, and the server's role is checked, as redis++ does; this is not redis++;
- cluster: redis-py's own RedisCluster and Lock.
The URL is redis+sentinel://HOST:PORT,.../NAME or redis+cluster://HOST:PORT,... Each way renews after every third
of the ttl. It believes in its lock until a ttl after it sent the last renewal that was confirmed, or until it is told
that the lock is not its own: what a careful program would do. It owns its connections and judges nothing.
"""

import select
import sys
import time

import redis
import redis.cluster
import redis.sentinel
from redis.exceptions import LockError, RedisError

LIMIT = 1  # seconds, for a connection or an answer
AGAIN = 0.1  # before another try
PAUSE = 0.02  # before the next free lock
FREE_TTL = 3


def now():
    """CLOCK_BOOTTIME in microseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def say(*words):
    print(*words, flush=True)


def over(seconds):
    """Waits; whether the input has ended meanwhile."""
    return bool(select.select([sys.stdin], [], [], max(seconds, 0))[0])


class AsksAndChecks(redis.Connection):
    """A connection that asks the sentinels whither, each time that it is made, and leaves who is no master."""

    def __init__(self, sentinels=(), service="", **options):
        super().__init__(**options)
        self.sentinels, self.service = sentinels, service

    def connect(self):
        if self._sock:
            return
        for host, port in self.sentinels:
            try:
                sentinel = redis.Redis(host=host, port=port, socket_timeout=LIMIT, socket_connect_timeout=LIMIT)
                host, self.port = sentinel.sentinel_get_master_addr_by_name(self.service)
                self.host = host.decode() if isinstance(host, bytes) else host
                break
            except (RedisError, TypeError):
                continue
        else:
            raise redis.ConnectionError("no sentinel answers")
        super().connect()
        self.send_command("ROLE")
        if self.read_response()[0] != b"master":
            self.disconnect()
            raise redis.ConnectionError("not a master")


def client_of(way, url):
    """The client of this way."""
    places, _, service = url.split("://", 1)[1].partition("/")
    addresses = [(place.rpartition(":")[0], int(place.rpartition(":")[2])) for place in places.split(",")]
    limits = {"socket_timeout": LIMIT, "socket_connect_timeout": LIMIT}
    if way == "sentinel":
        return redis.sentinel.Sentinel(addresses, sentinel_kwargs=limits, **limits).master_for(service)
    if way == "asks":
        pool = redis.ConnectionPool(AsksAndChecks, sentinels=addresses, service=service, **limits)
        return redis.Redis(connection_pool=pool)
    nodes = [redis.cluster.ClusterNode(*address) for address in addresses]
    return redis.cluster.RedisCluster(startup_nodes=nodes, **limits)


def take_one(client, name, ttl):
    """Waits for the lock; it and its end, or None where the input ended."""
    lock = client.lock(name, timeout=ttl, thread_local=False)
    while not over(AGAIN):
        asked = now()
        try:
            if lock.acquire(blocking=False):
                say("granted", now(), asked + int(ttl * 1e6))
                return lock, asked + int(ttl * 1e6)
        except (RedisError, OSError) as error:
            say("failed", now(), repr(error))
    return None, 0


def keep(lock, until, ttl):
    """Renews it until it is lost or the input ends."""
    pause = ttl / 3
    while not over(min(pause, (until - now()) / 1e6)):
        asked = now()
        if asked >= until:
            say("lost", asked, "its time is over")
            return
        try:
            lock.reacquire()
            until, pause = asked + int(ttl * 1e6), ttl / 3
            say("until", now(), until)
        except LockError as error:
            say("lost", now(), repr(error))
            return
        except (RedisError, OSError) as error:
            say("failed", now(), repr(error))
            pause = AGAIN
    say("released", now())


def take_free_ones(client, name):
    number = 0
    while not over(PAUSE):
        number += 1
        try:
            lock = client.lock(f"{name}:{number}", timeout=FREE_TTL)
            if lock.acquire(blocking=False):
                say("served", now())
                lock.release()
        except (RedisError, OSError) as error:
            say("failed", now(), repr(error))


def connected(way, url):
    """A client; RedisCluster wants the cluster to answer when it is made."""
    while True:
        try:
            return client_of(way, url)
        except RedisError as error:
            say("failed", now(), repr(error))
            if over(AGAIN):
                sys.exit(0)


def main():
    way, url, name, ttl = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]) / 1000
    client = connected(way, url)
    if not ttl:
        take_free_ones(client, name)
        return
    lock, until = take_one(client, name, ttl)
    if lock:
        keep(lock, until, ttl)


main()
