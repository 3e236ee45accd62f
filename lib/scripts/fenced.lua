-- Takes the lock and draws its fence. KEYS: lock, fence counter. ARGV: token, ttl in ms (0: no expiry), the counter's
-- ttl in ms, the grain of the clock in microseconds; how many fences are asked for besides, if any are (see fence.lua);
-- and the clock, if it is brought (see clock.lua): then behind a 0, if none are.
-- The fence, or "FENCE SPARE". 0: another has the lock.
local call, us = redis.pcall, ARGV[6]
--@ include clock.lua
--@ include fence.lua
local fence, spare = next_fence(KEYS[2], tonumber(us), tonumber(ARGV[4]), tonumber(ARGV[5] or 0))
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
local kept = call('SET', KEYS[2], string.format('%.0f', fence + spare), 'PX', ARGV[3])
if kept.err then
  redis.call('DEL', KEYS[1])
  return kept
end
return spare > 0 and string.format('%.0f %.0f', fence, spare) or fence
