// Numbers, spans and instants as words.

export const count = (value) => (value === null || value === undefined ? '–' : Math.round(value).toLocaleString('en-US'));

export function short(value) {
  if (value === null || value === undefined) return '–';
  for (const [size, letter] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) {
    if (Math.abs(value) >= size) return `${trimmed(value / (letter === 'k' ? 1e3 : size))}${letter}`;
  }
  return count(value);
}

const trimmed = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));

export function rate(value) {
  if (value === null || value === undefined) return '–';
  if (value >= 1000) return `${short(value >= 10000 ? value : Math.round(value))}/s`;
  return value >= 10 || value === 0 ? `${value.toFixed(0)}/s` : `${value.toFixed(1)}/s`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const whole = Math.round(seconds);
  if (seconds < 1) return seconds <= 0 ? '0s' : seconds < 0.001 ? `${(seconds * 1e6).toFixed(0)}µs` : `${(seconds * 1e3).toFixed(0)}ms`;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${pad(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${pad(Math.floor((whole % 3600) / 60))}m`;
  return `${Math.floor(whole / 86400)}d ${Math.floor((whole % 86400) / 3600)}h`;
}

const pad = (value) => String(value).padStart(2, '0');

export function clock(at) {
  const time = new Date(at * 1000);
  return Number.isNaN(time.getTime()) ? '' : `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return '–';
  for (const [size, unit] of [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  return `${value} B`;
}
