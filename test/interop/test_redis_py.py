"""evlock and the lock of redis-py on the same keys: each holds the other off, and either can take the other's over."""

import threading
import time

import peer
from peer import EXPIRED, HELD, NO_TTL, NOT_OWNED, OK, Peer, redis


def lock(context, **options):
    server = redis.Redis(unix_socket_path=context.server.path)
    return server.lock("job", **{"timeout": 60, "sleep": 0.02, **options})


def is_not_owned(call, *arguments):
    """Whether redis-py says that it is not, or not any more, the owner."""
    try:
        call(*arguments)
    except redis.exceptions.LockNotOwnedError:
        return True
    return False


def test_redis_py_holds_evlock_off(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert theirs.acquire(blocking=False)
    assert ours.do("try") == HELD
    assert ours.ask("locked") == 1 and ours.ask("owned") == 0
    theirs.release()
    assert ours.ask("locked") == 0
    assert ours.do("try") == OK and ours.held()
    assert ours.do("release") == OK


def test_evlock_holds_redis_py_off(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert ours.do("acquire") == OK
    assert not theirs.acquire(blocking=False)
    assert not theirs.acquire(blocking_timeout=0.1)
    assert theirs.locked() and not theirs.owned()
    assert ours.do("release") == OK
    assert not theirs.locked()
    assert theirs.acquire(blocking=False)
    theirs.release()


def test_locks_without_expiry_hold_off_too(context):
    theirs, ours = lock(context, timeout=None), Peer(context, "job", ttl=0)
    assert theirs.acquire()
    assert ours.do("try") == HELD
    token = theirs.local.token.decode()
    assert ours.do("adopt", token) == OK
    assert ours.call("add", 1000) == NO_TTL
    assert ours.do("extend", 60000) == OK
    assert ours.do("release") == OK
    assert ours.do("acquire") == OK
    assert not theirs.acquire(blocking=False)
    assert ours.do("release") == OK


def test_evlock_waits_for_redis_py(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert theirs.acquire()
    assert ours.call("acquire") == OK
    time.sleep(0.2)
    assert not ours.held()
    theirs.release()
    assert ours.end("acquire")[0] == OK
    assert ours.do("release") == OK


def test_redis_py_waits_for_evlock(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert ours.do("acquire") == OK
    got = []
    waiting = threading.Thread(target=lambda: got.append(lock(context, thread_local=False).acquire()))
    waiting.start()
    time.sleep(0.2)
    assert not got
    assert ours.do("release") == OK
    waiting.join(timeout=60)
    assert got == [True] and theirs.locked()
    assert ours.do("break") == OK


def test_a_renewed_lease_holds_redis_py_off(context):
    theirs, ours = lock(context), Peer(context, "job", ttl=3000, renewal=True)
    assert ours.do("acquire") == OK
    assert not theirs.acquire(blocking_timeout=5)
    assert ours.held() and not ours.losses()
    assert ours.do("release") == OK


def test_evlock_takes_over_what_redis_py_acquired(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert theirs.acquire()
    assert ours.do("adopt", theirs.local.token.decode()) == OK
    assert ours.ask("owned") == 1
    assert ours.do("extend", 600000) == OK
    assert context.server.command("PTTL", "job") > 500000
    assert ours.do("add", 600000) == OK
    assert context.server.command("PTTL", "job") > 1100000
    assert theirs.owned()
    assert ours.do("release") == OK
    assert is_not_owned(theirs.release)


def test_redis_py_takes_over_what_evlock_acquired(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert ours.do("acquire") == OK
    theirs.local.token = ours.export().encode()
    assert not ours.held()
    assert theirs.owned()
    assert theirs.extend(600)
    assert context.server.command("PTTL", "job") > 600000
    assert theirs.reacquire()
    theirs.release()
    assert ours.ask("locked") == 0 and not ours.losses()


def test_redis_py_extends_what_evlock_still_holds(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert ours.do("acquire") == OK
    theirs.local.token = context.server.command("GET", "job").encode()
    assert theirs.extend(600)
    assert ours.do("add", 1000) == OK, "one token, one lease"
    assert context.server.command("PTTL", "job") > 600000
    assert ours.do("release") == OK


def test_redis_py_takes_what_evlock_let_expire(context):
    theirs, ours = lock(context), Peer(context, "job", ttl=500)
    assert ours.do("acquire") == OK
    assert theirs.acquire(blocking_timeout=60)
    assert ours.lost() == EXPIRED
    assert ours.do("release") == NOT_OWNED
    assert theirs.owned(), "the new holder is left alone"
    theirs.release()


def test_evlock_takes_what_redis_py_let_expire(context):
    theirs, ours = lock(context, timeout=0.5), Peer(context, "job")
    assert theirs.acquire()
    assert ours.do("acquire") == OK
    assert is_not_owned(theirs.extend, 10) and is_not_owned(theirs.release)
    assert ours.held() and ours.ask("owned") == 1
    assert ours.do("release") == OK


def test_evlock_is_told_when_redis_py_has_its_lock(context):
    theirs, ours = lock(context), Peer(context, "job", ttl=60000, renewal=True)
    assert ours.do("acquire") == OK
    context.server.command("DEL", "job")
    assert theirs.acquire()
    assert ours.do("extend", 60000) == NOT_OWNED
    assert ours.lost() == NOT_OWNED
    theirs.release()


def test_evlock_breaks_the_lock_of_redis_py(context):
    theirs, ours = lock(context), Peer(context, "job")
    assert theirs.acquire()
    assert ours.do("break") == OK
    assert is_not_owned(theirs.release)


# --- evlock's wait queue ---


def joins(context, waiter):
    """Has the peer wait in the queue, behind all that are there."""
    before = context.server.command("ZCARD", "{job}:queue")
    assert waiter.call("acquire") == OK
    peer.harness.wait_for(lambda: context.server.command("ZCARD", "{job}:queue") == before + 1, "a place in the queue")


def test_the_queue_waits_for_redis_py(context):
    theirs, queue = lock(context), [Peer(context, "job", queue=True) for _ in range(3)]
    assert theirs.acquire()
    for waiter in queue:
        joins(context, waiter)
    time.sleep(0.3)
    assert theirs.owned() and not any(waiter.held() for waiter in queue)
    theirs.release()
    for waiter in queue:
        assert waiter.end("acquire")[0] == OK
        assert not theirs.acquire(blocking=False)
        assert waiter.do("release") == OK
    assert theirs.acquire(blocking=False)
    theirs.release()


def test_redis_py_does_not_overtake_the_queue(context):
    queue, got = [Peer(context, "job", queue=True) for _ in range(6)], []
    assert queue[0].do("acquire") == OK
    theirs = lock(context, thread_local=False, sleep=0.001)
    waiting = threading.Thread(target=lambda: got.append(theirs.acquire()), daemon=True)
    waiting.start()
    for waiter in queue[1:]:
        joins(context, waiter)
    for holder, successor in zip(queue, queue[1:]):
        before = context.server.attempts()
        peer.harness.wait_for(lambda: context.server.attempts() > before + 10, "redis-py's tries")
        assert holder.do("release") == OK
        assert successor.end("acquire")[0] == OK
        assert successor.held() and not got
    assert queue[-1].do("release") == OK
    waiting.join(timeout=60)
    assert got == [True] and theirs.owned()
    theirs.release()


def test_redis_py_and_the_queue_exclude_each_other(context):
    turns, inside, together, served = 12, [], [], []

    def take_turns(name, acquire, release):
        for _ in range(turns):
            assert acquire()
            inside.append(name)
            time.sleep(0.003)
            together.extend([list(inside)] if inside != [name] else [])
            inside.remove(name)
            release()
            served.append(name)

    queue = [Peer(context, "job", queue=True) for _ in range(3)]
    workers = [(lambda q=q: q.do("acquire") == OK, lambda q=q: q.do("release")) for q in queue]
    workers += [(theirs.acquire, theirs.release) for theirs in (lock(context, sleep=0.001) for _ in range(2))]
    threads = []
    for name, worker in enumerate(workers):
        threads.append(threading.Thread(target=take_turns, args=(name, *worker), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(timeout=60)
    assert not together, together
    assert sorted(served) == sorted(list(range(len(workers))) * turns)


peer.main(globals())
