-- Gives the fence counter at least this value.
-- KEYS: fence counter. ARGV: value, the counter's ttl in ms; and the clock, if it is brought (see clock.lua).
-- The counter as it is now.
--@ include reason.lua
local call, us = redis.pcall, ARGV[3]
local last = call('GET', KEYS[1])
if type(last) == 'table' then return last end
local fence = tonumber(ARGV[1])
--@ include clock.lua
local now = last and tonumber(last) or 0
local wrong = unreasonable(math.max(fence, now), tonumber(us))
if wrong then return wrong end
if now >= fence then return now end
local set = call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if set.err then return set end
return fence
