/** Where arrays of shared memory lie: apart while both are in use, and with a barrier between where not. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { allocateShared } from '../../src/backends/memory/shared-memory-liveness.ts'
import { bool, builtin, int, load, lt, variable } from '../../src/ir/expressions/expr.ts'
import { accessesOf } from '../../src/ir/statements/accesses.ts'
import type { Buffer, For, Launch, Stmt } from '../../src/ir/statements/loops.ts'
import { barrier, when } from '../../src/ir/statements/statement-builders.ts'
import { someStmt, stmt, walkStmts } from '../../src/ir/statements/tree.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

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

/** Which one or two arrays a statement touches; a condition, that the threads of a block agree on or do not. */
type Use = readonly number[] | { readonly agreed: boolean; readonly then: Use[]; readonly else: Use[] }
const isCondition = (u: Use): u is Exclude<Use, readonly number[]> => 'agreed' in u

/** Lengths of arrays, and uses of them. */
const programs = fc
  .array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 })
  .chain((lengths) => {
    const { uses } = fc.letrec<{ uses: Use[]; use: Use }>((tie) => ({
      uses: fc.array(tie('use'), { maxLength: 6, depthIdentifier: 'uses' }),
      use: fc.oneof(
        { maxDepth: 2, depthIdentifier: 'uses' },
        fc.array(fc.nat(lengths.length - 1), { minLength: 1, maxLength: 2 }),
        fc.record({ agreed: fc.boolean(), then: tie('uses'), else: tie('uses') }),
      ),
    }))
    return fc.record({ lengths: fc.constant(lengths), uses })
  })

/** Threads meet under what they agree on; in a row of them alone they may meet under anything. */
const statementsOf = (uses: readonly Use[], together = true): Stmt[] =>
  uses.map((u) => {
    if (!isCondition(u)) return touch(u.map((k) => `s${k}`))
    const agreed = together && u.agreed
    const meet = agreed ? barrier() : barrier({ lanes: { width: 2, among: 2 } })
    return when(
      agreed ? AGREED : APART,
      [meet, ...statementsOf(u.then, agreed)],
      statementsOf(u.else, agreed),
    )
  })
const AGREED = lt(int(0), variable('n'))
const APART = lt(builtin('thread.x'), variable('n'))

const meetsAll = (s: Stmt): boolean => someStmt([s], (x) => x.kind === 'barrier' && x.lanes === undefined)

/** What a block does on each path: where all of it meets, and the arrays that it touches at one time. */
type Step = 'meet' | readonly number[]
function pathsOf(body: readonly Stmt[]): Step[][] {
  return body.reduce<Step[][]>(
    (paths, s) => {
      const next = s.kind === 'if' && meetsAll(s) ? [...pathsOf(s.then), ...pathsOf(s.else)] : [stepsOf(s)]
      return paths.flatMap((p) => next.map((n) => [...p, ...n]))
    },
    [[]],
  )
}
function stepsOf(s: Stmt): Step[] {
  if (s.kind === 'barrier') return s.lanes ? [] : ['meet']
  const arrays = new Set(accessesOf([s]).map((a) => Number(a.buffer.slice(1))))
  return arrays.size > 0 ? [[...arrays]] : []
}

const barriersIn = (body: readonly Stmt[]): number => {
  let n = 0
  walkStmts(body, (s) => {
    if (s.kind === 'barrier') n++
  })
  return n
}

describe('placeShared', () => {
  property([programs], { numRuns: runs(250) })(
    'no two live arrays overlap on any path',
    ({ lengths, uses }) => {
      const arrays = lengths.map((n, k) => array(`s${k}`, n))
      const body = [...arrays.map(alloc), ...statementsOf(uses)]
      const { bytes, offsets, launch, reused } = allocateShared(launchOf(body))
      const total = arrays.reduce((n, b) => n + 16 * Math.ceil((4 * lengths[arrays.indexOf(b)]!) / 16), 0)
      expect(bytes).toBeLessThanOrEqual(total)
      const at = (k: number) => ({ from: offsets.get(`s${k}`)!, to: offsets.get(`s${k}`)! + 4 * lengths[k]! })
      for (const k of lengths.keys()) {
        expect(at(k).from % 16).toBe(0)
        expect(at(k).to).toBeLessThanOrEqual(bytes)
      }
      const meet = (a: number, b: number): boolean => at(a).from < at(b).to && at(b).from < at(a).to
      expect(reused).toBe(arrays.some((_, a) => arrays.some((_, b) => a !== b && meet(a, b))))
      if (!reused) expect(launch.body).toEqual(body)
      walkStmts(launch.body, (s) => {
        if (s.kind === 'if') expect(meetsAll(s)).toBe(s.cond === AGREED)
      })
      for (const path of pathsOf(launch.body)) {
        // In the order of execution: whoever takes over a place comes after a barrier, and the one before is not used again.
        const since = new Map<number, number>()
        let barriers = 0
        for (const step of path) {
          if (step === 'meet') {
            barriers++
            continue
          }
          for (const k of step)
            for (const [other, when] of since)
              if (other !== k && meet(k, other)) expect(when).toBeLessThan(barriers)
          for (const k of step) since.set(k, barriers)
        }
        const used = intervals(path.filter((step) => step !== 'meet'))
        for (const [a, first] of used)
          for (const [b, second] of used)
            if (a !== b && first[0] <= second[1] && second[0] <= first[1]) expect(meet(a, b)).toBe(false)
      }
    },
  )

  property([programs], { numRuns: runs(100) })(
    'statements share memory under a block-uniform condition',
    ({ lengths, uses }) => {
      const body = [...lengths.map((n, k) => alloc(array(`s${k}`, n))), barrier(), ...statementsOf(uses)]
      const guarded = when(AGREED, body)
      const [plain, inside] = [allocateShared(launchOf(body)), allocateShared(launchOf([guarded]))]
      expect(inside.bytes).toBe(plain.bytes)
      expect([...inside.offsets]).toEqual([...plain.offsets])
      expect(barriersIn(inside.launch.body)).toBe(barriersIn(plain.launch.body))
    },
  )

  test('an array used by both branches reuses earlier storage, behind a barrier in each', () => {
    const arrays = [alloc(array('a', 8)), alloc(array('b', 8))]
    const both = when(AGREED, [touch(['b']), barrier()], [touch(['b'])])
    const { bytes, launch } = allocateShared(launchOf([...arrays, touch(['a']), both, touch(['b'])]))
    expect(bytes).toBe(32)
    const [, , , branches, last] = launch.body
    expect(
      branches?.kind === 'if' && [branches.then, branches.else].map((b) => b.map((s) => s.kind)),
    ).toEqual([
      ['barrier', 'store', 'barrier'],
      ['barrier', 'store'],
    ])
    expect(last?.kind).toBe('store')
    // On the path that has not taken it over yet, the statement behind the branches does.
    const one = when(AGREED, [touch(['b']), barrier()])
    const after = allocateShared(launchOf([...arrays, touch(['a']), one, touch(['b'])])).launch.body
    expect(after.map((s) => s.kind)).toEqual(['alloc', 'alloc', 'store', 'if', 'barrier', 'store'])
  })

  test('arrays with disjoint lifetimes share storage', () => {
    const body = [alloc(array('a', 8)), alloc(array('b', 8)), touch(['a']), touch(['b'])]
    const { bytes, launch } = allocateShared(launchOf(body))
    expect(bytes).toBe(32)
    expect(launch.body.map((s) => s.kind)).toEqual(['alloc', 'alloc', 'store', 'barrier', 'store'])
  })

  test('a small live array does not fragment the others', () => {
    const body = [
      ...[array('result', 16), array('table', 4), array('tiles', 24)].map(alloc),
      touch(['table', 'tiles']),
      touch(['result', 'table']),
    ]
    const { bytes, offsets } = allocateShared(launchOf(body))
    expect(bytes).toBe(4 * (24 + 4))
    expect(offsets.get('table')).toBe(4 * 24)
  })

  test('an array of a loop has separate storage', () => {
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
    const { bytes, reused } = allocateShared(launchOf([alloc(array('a', 8)), inside]))
    expect([bytes, reused]).toEqual([64, false])
  })

  test('arrays of consecutive statements share storage', () => {
    const alone = (name: string): Stmt => when(bool(true), [alloc(array(name, 8)), touch([name])])
    const { bytes, launch } = allocateShared(launchOf([alone('a'), alone('b')]))
    expect(bytes).toBe(32)
    expect(launch.body.map((s) => s.kind)).toEqual(['if', 'barrier', 'if'])
  })

  test('an asynchronous copy reuses storage of another copy, and never that of thread stores', () => {
    const arrays = ['a', 'b', 'c', 'd'].map((name) => array(name, 8))
    // `b` and `c` are copied after `a` was stored; `d` is stored after them.
    const body = [...arrays.map(alloc), touch(['a']), copy('b'), copy('c'), touch(['d'])]
    const { bytes, offsets } = allocateShared(launchOf(body))
    expect(bytes).toBe(64)
    expect([...offsets.values()]).toEqual([0, 32, 32, 0])
    // An instruction that signals none stores as threads do.
    const threads = [...arrays.map(alloc), copy('a', false), copy('b'), copy('c'), touch(['d'])]
    expect([...allocateShared(launchOf(threads)).offsets.values()]).toEqual([0, 32, 32, 0])
    // Whichever is made first.
    const turned = [...[...arrays].reverse().map(alloc), ...body.slice(4)]
    expect(allocateShared(launchOf(turned)).offsets.get('a')).not.toBe(
      allocateShared(launchOf(turned)).offsets.get('b'),
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
