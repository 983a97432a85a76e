/**
 * A list in random order (Fisher and Yates).
 * @param random uniform in [0, 1)
 */
export function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const out = [...list]
  for (let k = out.length - 1; k > 0; k--) {
    const at = Math.floor(random() * (k + 1))
    ;[out[k], out[at]] = [out[at]!, out[k]!]
  }
  return out
}
