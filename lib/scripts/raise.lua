-- Gives the fence counter at least this value.
-- KEYS: fence counter. ARGV: value, the counter's ttl in ms; and the clock, if it is brought (see reason.lua).
-- The counter as it is now.
--@ include reason.lua
local last = redis.pcall('GET', KEYS[1])
if type(last) == 'table' then return last end
local fence = tonumber(ARGV[1])
local us = clock(ARGV[3])
if type(us) == 'table' then return us end
local now = last and tonumber(last) or 0
local wrong = unreasonable(math.max(fence, now), tonumber(us))
if wrong then return wrong end
if now >= fence then return now end
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if set.err then return set end
return fence
