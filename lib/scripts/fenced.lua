-- Takes the lock and draws its fence. KEYS: lock, fence counter. ARGV: token, ttl in ms (0: no expiry), the counter's
-- ttl in ms, the grain of the clock in microseconds.
-- The fence. 0: another has the lock.
--@ include fence.lua
local time = redis.pcall('TIME')
if time.err then return time end
local fence = next_fence(KEYS[2], tonumber(time[1]) * 1000000 + tonumber(time[2]), tonumber(ARGV[4]))
if type(fence) == 'table' then return fence end
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
