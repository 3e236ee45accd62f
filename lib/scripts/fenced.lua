-- Takes the lock and draws its fence. KEYS: lock, fence counter. ARGV: token, ttl in ms (0: no expiry), the counter's
-- ttl in ms, the grain of the clock in microseconds; and the clock, if it is brought (see clock.lua).
-- The fence. 0: another has the lock.
local call, us = redis.pcall, ARGV[5]
--@ include clock.lua
--@ include fence.lua
local fence = next_fence(KEYS[2], tonumber(us), tonumber(ARGV[4]))
if type(fence) == 'table' then return fence end
local set
if ARGV[2] == '0' then
  set = call('SET', KEYS[1], ARGV[1], 'NX')
else
  set = call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
end
if not set then return 0 end
if set.err then return set end
-- Not tostring(): it would round a large number.
local kept = call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[3])
if kept.err then
  redis.call('DEL', KEYS[1])
  return kept
end
return fence
