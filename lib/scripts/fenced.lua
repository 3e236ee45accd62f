-- Takes the lock and draws its fence. KEYS: lock, fence counter. ARGV: token, ttl in ms (0: no expiry), the counter's
-- ttl in ms, the grain of the clock in microseconds.
-- The fence. 0: another has the lock.
local last = redis.pcall('GET', KEYS[2])
if type(last) == 'table' then return last end
local time = redis.pcall('TIME')
if time.err then return time end
-- The clock in microseconds is above all that was ever drawn: also where the counter is new, was lost, or came back from
-- an old copy. Beside a counter it is rounded down to its grain, so that the nodes of a quorum draw the same number.
local fence = tonumber(time[1]) * 1000000 + tonumber(time[2])
if last then
  last = tonumber(last)
  if not last then return redis.error_reply('ERR the fence counter holds no number') end
  fence = math.max(last + 1, fence - fence % tonumber(ARGV[4]))
end
local set
if ARGV[2] == '0' then
  set = redis.pcall('SET', KEYS[1], ARGV[1], 'NX')
else
  set = redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
end
if not set then return 0 end
if set.err then return set end
-- Not tostring(): it would round a large number.
local kept = redis.pcall('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[3])
if kept.err then
  redis.call('DEL', KEYS[1])
  return kept
end
return fence
