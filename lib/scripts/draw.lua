-- Included where a waiter is given its fence: `fence` is the next one then, as text, and kept. KEYS: lock, queue, fence
-- counter. `us`: the server's clock in microseconds, as text.
--@ include fence.lua
local drawn = next_fence(KEYS[3], tonumber(us), 1)
if type(drawn) == 'table' then return drawn end
fence = string.format('%.0f', drawn)
local kept = call('SET', KEYS[3], fence, 'PX', '@FENCE_TTL_MS@')
if kept.err then return kept end
