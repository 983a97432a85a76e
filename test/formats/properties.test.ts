import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Level } from '../../src/columns/stored-level.ts'
import { hasIndices, parentOf } from '../../src/ir/coordinates/axis.ts'
import { type BuiltStorage, buildStorage } from '../../src/storage/build-storage.ts'
import { locate, scatterValues } from '../../src/storage/entries/locate.ts'
import { toCoords } from '../../src/storage/entries/stored-coords.ts'
import { validateStored } from '../../src/storage/ready/validate.ts'
import { restrict, type Storage } from '../../src/storage/storage.ts'
import type { StoredTensor } from '../../src/storage/tensor.ts'
import { runs } from '../support/cases.ts'
import { without } from '../support/omit.ts'
import { type Case, cases, lines } from './arbitrary.ts'

const build = (c: Case): BuiltStorage =>
  buildStorage({ axes: c.axes, extents: c.extents, coords: c.coords, widths: c.widths })

const arraysOf = (s: Storage): StoredTensor['arrays'] =>
  Object.fromEntries(
    [...s.levels].map(([name, l]) => [
      name,
      {
        ...(l.indptr ? { indptr: l.indptr } : {}),
        ...(l.indices ? { indices: l.indices } : {}),
        ...(l.mask ? { mask: l.mask } : {}),
        ...(l.starts ? { starts: l.starts } : {}),
      },
    ]),
  )

/** The definition of packed indices: words one after the other, lowest bit first, cut into fields. */
function indicesOf({ axis, indices, positions }: Level): number[] | Int32Array | null {
  if (!indices || !hasIndices(axis) || axis.packed?.kind !== 'const') return indices
  const bits = axis.packed.value
  const text = [...indices]
    .map((w) => (w >>> 0).toString(2).padStart(32, '0').split('').reverse().join(''))
    .join('')
  return Array.from({ length: positions }, (_, q) =>
    Number.parseInt([...text.slice(q * bits, (q + 1) * bits)].reverse().join(''), 2),
  )
}

/** The definition of the axis kinds, read off `ir/coordinates/axis.ts`: all positions under p with the coordinate c. */
function positionsWith(level: Level, p: number, c: number): number[] {
  const { axis, extent, indptr, mask, starts, width } = level
  const indices = indicesOf(level)
  if (mask) {
    const words = mask.subarray(p * Math.ceil(extent / 32), (p + 1) * Math.ceil(extent / 32))
    const bits = [...words]
      .map((w) => (w >>> 0).toString(2).padStart(32, '0').split('').reverse().join(''))
      .join('')
    return bits[c] === '1' ? [indptr![p]! + bits.slice(0, c).replaceAll('0', '').length] : []
  }
  const [lo, hi] =
    axis.kind === 'dense_fixed'
      ? [p * extent, (p + 1) * extent]
      : axis.kind === 'sparse_fixed'
        ? [p * width!, (p + 1) * width!]
        : [indptr![p]!, indptr![p + 1]!]
  const found: number[] = []
  for (let q = lo; q < hi; q++)
    if ((indices ? indices[q]! : q - lo + (starts ? starts[p]! : 0)) === c) found.push(q)
  return found
}

/** All addresses of the element at the given coordinates, by the definition of the layout. */
function addresses(s: Storage, at: ReadonlyMap<string, number>): number[] {
  let result = [0]
  for (const tree of s.trees) {
    let reached = [0]
    for (const level of tree)
      reached = reached.flatMap((p) => positionsWith(level, p, at.get(level.axis.name)!))
    const size = tree.at(-1)!.positions
    result = result.flatMap((a) => reached.map((p) => a * size + p))
  }
  return result
}

const nonunique = (c: Case): boolean => c.axes.some((a) => hasIndices(a) && !a.unique)

const entryCoords = (c: Case, e: number): Map<string, number> =>
  new Map(c.axes.map((a, k) => [a.name, c.coords[k]![e]!]))

describe('random axis forests', () => {
  const seen = new Set<string>()

  it('storage to coordinates inverts coordinates to storage', () => {
    fc.assert(
      fc.property(cases, (c) => {
        for (const a of c.axes)
          seen.add(
            `${a.kind}${'unique' in a && !a.unique ? ' nonunique' : ''}${'packed' in a && a.packed ? ' packed' : ''}${a.kind === 'dense_fixed' && a.parent !== null ? ' under a parent' : ''}`,
          )
        const s = build(c)
        const stored = scatterValues(s, { coords: c.coords, values: c.values, dtype: 'f64' }, 'f64', 0)
        const back = without(toCoords(s, stored, 'f64'), 0)
        expect(lines(back.coords, back.values!, true)).toEqual(lines(c.coords, c.values, c.apart))
        expect(back.shape).toEqual(c.shape)
      }),
      { numRuns: runs(500) },
    )
    expect([...seen].sort()).toEqual([
      'bitmap',
      'dense_fixed',
      'dense_fixed under a parent',
      'dense_variable',
      'run',
      'sparse_fixed',
      'sparse_fixed nonunique',
      'sparse_fixed nonunique packed',
      'sparse_fixed packed',
      'sparse_variable',
      'sparse_variable nonunique',
      'sparse_variable nonunique packed',
      'sparse_variable packed',
    ])
  })

  it('one tree lists its elements in lexicographic order', () => {
    fc.assert(
      fc.property(
        // Copies of a nonunique coordinate stand side by side, each with all that is under it.
        cases.filter((c) => !nonunique(c) && c.axes.filter((a) => parentOf(a) === null).length === 1),
        (c) => {
          const s = build(c)
          const ones = new Float64Array(s.size).fill(1)
          const back = toCoords(s, ones, 'f64')
          const rows = Array.from(back.values!, (_, e) => back.coords.map((x) => x[e]!))
          const sorted = [...rows].sort((a, b) => a.map((x, k) => x - b[k]!).find((d) => d !== 0) ?? 0)
          expect(rows).toEqual(sorted)
        },
      ),
      { numRuns: runs(125) },
    )
  })

  it('the position of an entry follows the definition of the layout', () => {
    fc.assert(
      fc.property(cases, (c) => {
        const s = build(c)
        const used = new Set<number>()
        for (let e = 0; e < c.values.length; e++) {
          const position = s.entries.positions ? s.entries.positions[e]! : e
          expect(addresses(s, entryCoords(c, e))).toContain(position)
          used.add(position)
        }
        if (c.apart) expect(used.size).toBe(c.values.length)
        else expect(used.size).toBe(new Set(lines(c.coords, c.values, false)).size)
      }),
      { numRuns: runs(250) },
    )
  })

  it('the structure does not depend on the order of the entries', () => {
    fc.assert(
      fc.property(cases, (c) => {
        const reversed = { ...c, coords: c.coords.map((x) => x.slice().reverse()) }
        expect(arraysOf(build(reversed))).toEqual(arraysOf(build(c)))
      }),
      { numRuns: runs(125) },
    )
  })

  it('built arrays are valid, are bound without a copy, and have the same positions', () => {
    fc.assert(
      fc.property(cases, (c) => {
        const s = build(c)
        const stored = scatterValues(s, { coords: c.coords, values: c.values, dtype: 'f64' }, 'f64', 0)
        const arrays = arraysOf(s)
        // Words do not say how many fields there are.
        const widths = new Map(
          [...s.levels].flatMap(([name, l]) =>
            l.bits === undefined || l.width === null ? [] : [[name, l.width] as const],
          ),
        )
        const tensor: StoredTensor = { kind: 'stored', shape: c.shape, arrays, values: stored, dtype: 'f64' }
        const bound = validateStored(c.axes, { extents: c.extents, widths }, tensor)
        expect(bound.size).toBe(s.size)
        for (const [name, l] of bound.levels) {
          expect(l.indices).toBe(s.levels.get(name)!.indices)
          expect(l.indptr).toBe(s.levels.get(name)!.indptr)
          expect(l.mask).toBe(s.levels.get(name)!.mask)
          if (c.coords[0]!.length > 0) expect(l.width).toBe(s.levels.get(name)!.width)
        }
        const found = [...locate(bound, c.coords)]
        const known = s.entries.positions ? [...s.entries.positions] : found.map((_, e) => e)
        if (!nonunique(c)) expect(found).toEqual(known)
        for (let e = 0; e < found.length; e++) expect(addresses(s, entryCoords(c, e))).toContain(found[e])
      }),
      { numRuns: runs(250) },
    )
  })

  it('a position of a nonunique axis has as many coordinates of its fixed child as fit', () => {
    fc.assert(
      fc.property(cases, (c) => {
        const s = build({ ...c, coords: c.coords })
        const shared = buildStorage({
          axes: c.axes,
          extents: c.extents,
          coords: c.coords,
          widths: c.widths,
          duplicates: 'share',
        })
        for (const storage of [s, shared])
          for (const level of storage.levels.values()) {
            const { axis, width } = level
            const indices = indicesOf(level)
            if (axis.kind !== 'sparse_fixed' || !axis.ordered) continue
            // Padding comes last, and coordinates ascend; strictly, where they are unique.
            for (let p = 0; p * width! < indices!.length; p++) {
              const own = [...indices!.slice(p * width!, (p + 1) * width!)]
              const held = own.filter((x) => x < storage.levels.get(axis.name)!.extent)
              expect(own.slice(0, held.length)).toEqual(held)
              expect(held).toEqual([...(axis.unique ? new Set(held) : held)].sort((a, b) => a - b))
            }
          }
        // Entries of equal coordinates have one position, or each its own.
        const positions = shared.entries.positions ?? c.coords[0]!.map((_, e) => e)
        expect(new Set(positions).size).toBe(new Set(lines(c.coords, c.values, false)).size)
        // Rows with room are not left for another: only the last piece of a run is short.
        const [outer, inner] = c.axes
        if (c.axes.length !== 2 || inner?.kind !== 'sparse_fixed' || !c.widths.has(inner.name)) return
        if (!inner.unique || outer?.kind !== 'sparse_variable') return
        const rows = new Map<number, Set<number>>()
        c.coords[0]!.forEach((x, e) => {
          rows.set(x, (rows.get(x) ?? new Set()).add(c.coords[1]![e]!))
        })
        const w = c.widths.get(inner.name)!
        expect([...indicesOf(shared.levels.get(outer.name)!)!]).toEqual(
          [...rows.keys()]
            .sort((a, b) => a - b)
            .flatMap((x) => new Array(Math.ceil(rows.get(x)!.size / w)).fill(x)),
        )
      }),
      { numRuns: runs(250) },
    )
  })

  it('a buffer over the first axes of the trees has one element for each of their positions', () => {
    fc.assert(
      fc.property(cases, fc.nat(), (c, cut) => {
        const s = build(c)
        const names = c.axes.map((a) => a.name).slice(0, 1 + (cut % c.axes.length))
        const part = restrict(s, names)
        const coords = c.coords.slice(0, names.length)
        const out = scatterValues(part, { coords, values: c.values, dtype: 'f64' }, 'f64', 0)
        expect(out.length).toBe(part.size)
        const back = without(toCoords(part, out, 'f64'), 0)
        expect(lines(back.coords, back.values!, false)).toEqual(lines(coords, c.values, false))
      }),
      { numRuns: runs(250) },
    )
  })
})
