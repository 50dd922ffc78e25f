-- Counts one request against all limits, or against none when one of them is used up.
-- Keys: one log for each limit. Arguments: requests, milliseconds and group of each limit, and 0 when nothing is to be counted.
-- Answers the position of the limit that is used up, or 0 and what is left of each.
-- A log is a text of numbers: the time of the newest request, the size of the last group, and the start of each group.
-- What it means is said in window.rs.
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local logs, answer = {}, {0}
for i, key in ipairs(KEYS) do
    local requests, window, group = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
    local numbers = {}
    for number in string.gmatch(redis.call('GET', key) or '', '%d+') do
        numbers[#numbers + 1] = tonumber(number)
    end
    local newest, last, starts, now = numbers[1] or 0, numbers[2] or 0, {}, clock
    if now + window >= newest then
        now = math.max(now, newest)
        for n = 3, #numbers do
            if numbers[n] + window > now then
                starts[#starts + 1] = numbers[n]
            end
        end
    end
    local held = 0
    if #starts > 0 then
        held = (#starts - 1) * group + last
    end
    if held + 1 > requests then
        return {i}
    end
    if #starts == 0 or last >= group then
        starts[#starts + 1] = now
        last = 1
    else
        last = last + 1
    end
    logs[i] = string.format('%d %d', now, last)
    for _, start in ipairs(starts) do
        logs[i] = logs[i] .. string.format(' %d', start)
    end
    answer[i + 1] = requests - held - 1
end
if ARGV[3 * #KEYS + 1] == '0' then
    return answer
end
for i, key in ipairs(KEYS) do
    redis.call('SET', key, logs[i], 'PX', ARGV[3 * i - 1])
end
return answer
