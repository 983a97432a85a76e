/** Where arrays of shared memory lie: apart while both are in use, and with a barrier between where not. */
import { fc, test as law } from '@fast-check/vitest'
import { describe, expect, test } from 'vitest'
import { placeShared } from '../../src/backends/shared-memory-liveness.ts'
import { bool, int, load } from '../../src/ir/expr.ts'
import type { Buffer, For, Launch, Stmt } from '../../src/ir/loops.ts'
import { when } from '../../src/ir/statement-builders.ts'
import { stmt } from '../../src/ir/tree.ts'
import { runs } from '../support/cases.ts'

const array = (name: string, length: number): Buffer => ({
  name,
  dtype: 'f32',
  scope: 'shared',
  role: 'local',
  shape: [int(length)],
  fill: 0,
  accumulate: 'f32',
})
const alloc = (b: Buffer): Stmt => stmt<Stmt>({ kind: 'alloc', buffer: b })
/** A statement that touches some arrays: writes the first, reads the others. */
const touch = (names: readonly string[]): Stmt =>
  stmt<Stmt>({
    kind: 'store',
    buffer: names[0]!,
    index: [int(0)],
    value: names.slice(1).reduce((e, n) => load(n, [int(1)], 'f32') ?? e, load(names[0]!, [int(2)], 'f32')),
  })
const launchOf = (body: readonly Stmt[]): Launch =>
  ({
    kind: 'launch',
    name: 'k',
    grid: [int(1), int(1), int(1)],
    block: [32, 1, 1],
    body,
  }) as unknown as Launch

/** Lengths of arrays, and which two each statement touches. */
const programs = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }).chain((lengths) =>
  fc.record({
    lengths: fc.constant(lengths),
    uses: fc.array(fc.array(fc.nat(lengths.length - 1), { minLength: 1, maxLength: 2 }), { maxLength: 10 }),
  }),
)

describe('placeShared', () => {
  law.prop([programs], { numRuns: runs(250) })(
    'no two arrays in use at one time meet',
    ({ lengths, uses }) => {
      const arrays = lengths.map((n, k) => array(`s${k}`, n))
      const body = [...arrays.map(alloc), ...uses.map((u) => touch(u.map((k) => `s${k}`)))]
      const { bytes, offsets, launch, reused } = placeShared(launchOf(body))
      const total = arrays.reduce((n, b) => n + 16 * Math.ceil((4 * lengths[arrays.indexOf(b)]!) / 16), 0)
      expect(bytes).toBeLessThanOrEqual(total)
      const at = (k: number) => ({ from: offsets.get(`s${k}`)!, to: offsets.get(`s${k}`)! + 4 * lengths[k]! })
      for (const k of lengths.keys()) {
        expect(at(k).from % 16).toBe(0)
        expect(at(k).to).toBeLessThanOrEqual(bytes)
      }
      const meet = (a: number, b: number): boolean => at(a).from < at(b).to && at(b).from < at(a).to
      // In the order of execution: whoever takes over a place comes after a barrier, and the one before is not used again.
      const since = new Map<number, number>()
      let barriers = 0
      for (const s of launch.body) {
        if (s.kind === 'barrier') barriers++
        if (s.kind !== 'store') continue
        const touched = [s.buffer, ...(s.value.kind === 'load' ? [s.value.buffer] : [])].map((n) =>
          Number(n.slice(1)),
        )
        for (const k of touched)
          for (const [other, when] of since)
            if (other !== k && meet(k, other)) expect(when).toBeLessThan(barriers)
        for (const k of touched) since.set(k, barriers)
        for (const a of touched) for (const b of touched) if (a !== b) expect(meet(a, b)).toBe(false)
      }
      expect(reused).toBe(barriers > 0)
      for (const [a, first] of intervals(uses))
        for (const [b, second] of intervals(uses))
          if (a !== b && first[0] <= second[1] && second[0] <= first[1]) expect(meet(a, b)).toBe(false)
    },
  )

  test('arrays that follow each other take the place of one', () => {
    const body = [alloc(array('a', 8)), alloc(array('b', 8)), touch(['a']), touch(['b'])]
    const { bytes, launch } = placeShared(launchOf(body))
    expect(bytes).toBe(32)
    expect(launch.body.map((s) => s.kind)).toEqual(['alloc', 'alloc', 'store', 'barrier', 'store'])
  })

  test('a small array that is always in use does not part the others', () => {
    const body = [
      ...[array('result', 16), array('table', 4), array('tiles', 24)].map(alloc),
      touch(['table', 'tiles']),
      touch(['result', 'table']),
    ]
    const { bytes, offsets } = placeShared(launchOf(body))
    expect(bytes).toBe(4 * (24 + 4))
    expect(offsets.get('table')).toBe(4 * 24)
  })

  test('an array of a loop has a place of its own', () => {
    const inside = stmt<For>({
      kind: 'for',
      var: 't',
      name: 't',
      nest: 'k',
      extent: int(2),
      reduce: false,
      guards: [],
      mode: { kind: 'serial' },
      body: [alloc(array('b', 8)), touch(['b', 'a'])],
    })
    const { bytes, reused } = placeShared(launchOf([alloc(array('a', 8)), inside]))
    expect([bytes, reused]).toEqual([64, false])
  })

  test('arrays of statements that follow each other take the place of one', () => {
    const alone = (name: string): Stmt => when(bool(true), [alloc(array(name, 8)), touch([name])])
    const { bytes, launch } = placeShared(launchOf([alone('a'), alone('b')]))
    expect(bytes).toBe(32)
    expect(launch.body.map((s) => s.kind)).toEqual(['if', 'barrier', 'if'])
  })

  test('a copy of the device goes where another went, and never where threads stored before', () => {
    const arrays = ['a', 'b', 'c', 'd'].map((name) => array(name, 8))
    // `b` and `c` are copied after `a` was stored; `d` is stored after them.
    const body = [...arrays.map(alloc), touch(['a']), copy('b'), copy('c'), touch(['d'])]
    const { bytes, offsets } = placeShared(launchOf(body))
    expect(bytes).toBe(64)
    expect([...offsets.values()]).toEqual([0, 32, 32, 0])
    // An instruction that signals none stores as threads do.
    const threads = [...arrays.map(alloc), copy('a', false), copy('b'), copy('c'), touch(['d'])]
    expect([...placeShared(launchOf(threads)).offsets.values()]).toEqual([0, 32, 32, 0])
    // Whichever is made first.
    const turned = [...[...arrays].reverse().map(alloc), ...body.slice(4)]
    expect(placeShared(launchOf(turned)).offsets.get('a')).not.toBe(
      placeShared(launchOf(turned)).offsets.get('b'),
    )
  })
})

/** A copy into an array that signals a barrier; others are made by threads. */
const copy = (name: string, signals = true): Stmt =>
  stmt<Stmt>({
    kind: 'instr',
    instr: 'bulk',
    threads: 1,
    texts: [
      {
        target: 'cuda',
        from: 0,
        pieces: [
          { kind: 'shared', buffer: name, index: [int(0)], mode: 'write' },
          ...(signals ? [{ kind: 'shared', buffer: 'barrier', index: [int(0)], mode: 'meet' } as const] : []),
        ],
      },
    ],
  })

function intervals(uses: readonly (readonly number[])[]): Map<number, [number, number]> {
  const out = new Map<number, [number, number]>()
  uses.forEach((u, at) => {
    for (const k of u) out.set(k, [out.get(k)?.[0] ?? at, at])
  })
  return out
}
