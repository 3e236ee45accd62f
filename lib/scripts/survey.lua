-- Tells how things stand with the lock at one moment, whoever holds it. KEYS: lock, and, if its queue is asked for too,
-- that. ARGV, with a queue: the waiter (see grant.lua) whose place is asked for, or an empty one.
-- "LEFT WAITERS AHEAD VALUE": what the key has left in ms (-1: no expiry; -2: nobody has the lock), how many wait, how
-- many of them are ahead of the waiter (-1: it is not in the queue), and what the key holds.
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then return found end
local left, waiters, ahead = -2, 0, -1
if found then left = redis.pcall('PTTL', KEYS[1]) end
if type(left) == 'table' then return left end
if KEYS[2] then waiters = redis.pcall('ZCARD', KEYS[2]) end
if type(waiters) == 'table' then return waiters end
if KEYS[2] and ARGV[1] ~= '' then ahead = redis.pcall('ZRANK', KEYS[2], ARGV[1]) or -1 end
if type(ahead) == 'table' then return ahead end
-- Not tostring(): it would round a large number.
return string.format('%.0f %.0f %.0f ', left, waiters, ahead) .. (found or '')
