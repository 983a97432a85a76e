import type { CoordTensor } from '../../src/storage/tensor.ts'

/** The entries whose value is not `fill`: those that blocks and dense levels would hold without an entry. */
export function without(t: CoordTensor, fill: number): CoordTensor {
  const kept = Int32Array.from([...t.values!.keys()].filter((e) => t.values![e] !== fill))
  const values = t.values!.filter((x) => x !== fill)
  return { ...t, coords: t.coords.map((c) => kept.map((e) => c[e]!)), values }
}
