/** Steps by handles do what steps by names do: in every nest, on iterators and on loops, and with handles from before other steps. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { load } from '../../src/node.ts'
import { runs, scaled } from '../support/cases.ts'

const NESTS = ['one', 'two', 'three']
const TEXT = `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  ${NESTS.map((n) => `buffer Y_${n}: f32[i, f] out`).join('\n')}
  ${NESTS.map((n) => `iterate ${n} [i, j, f] as SRS { Y_${n}[i, f] += A[i, j] }`).join('\n')}
}`

const step = fc.record({
  nest: fc.constantFrom(...NESTS),
  kind: fc.constantFrom('reorder', 'reorder', 'fuse', 'split', 'bind', 'accumulate'),
  loops: fc.shuffledSubarray(['i', 'j', 'f'], { minLength: 1 }),
  /** Whose handles are taken: the first kernel's, or the current one's. */
  old: fc.boolean(),
})

test('handles and names', async () => {
  const first = (await load(TEXT)).kernel()
  type K = typeof first
  type L = Parameters<K['split']>[0]
  const apply = (k: K, kind: string, loops: readonly L[], t: number): K => {
    if (kind === 'reorder') return k.reorder(...loops)
    if (kind === 'fuse') return k.fuse(loops, `e${t}`)
    if (kind === 'bind') return k.bind(loops.slice(0, 1).map((l) => [l, 'block.x'] as const))
    return kind === 'split' ? k.split(loops[0]!, 2, [`o${t}`, `i${t}`]) : k.unroll(loops[0]!, 2)
  }
  const outcome = (f: () => K): K | string => {
    try {
      return f()
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      return e.diagnostics[0]!.code
    }
  }
  let done = 0
  fc.assert(
    fc.property(fc.array(step, { maxLength: 5 }), (steps) => {
      let [named, handled] = [first, first]
      for (const [t, { nest, kind, loops, old }] of steps.entries()) {
        // Of one loop it gives that another name, under which a handle from before still finds it.
        if (kind === 'fuse' && loops.length === 1) continue
        const names = loops.map((l) => `${nest}.${l}`)
        const nests = (old ? first : handled).inspect.nests.filter((n) => n.name === nest)
        const handles = loops.map(
          (l) => nests.flatMap((n) => n.loops).find((x) => x.name === `${nest}.${l}` || x.name === l)?.handle,
        )
        if (handles.some((h) => h === undefined)) continue
        const a = outcome(() => apply(named, kind, names, t))
        const b = outcome(() => apply(handled, kind, handles as L[], t))
        if (typeof a === 'string' || typeof b === 'string') {
          expect(b, `${kind} ${names.join()} ${old}`).toBe(a)
          continue
        }
        done++
        expect(b.trace.length).toBe(a.trace.length)
        expect(b.show(2)).toBe(a.show(2))
        ;[named, handled] = [a, b]
      }
    }),
    { numRuns: runs(150) },
  )
  expect(done).toBeGreaterThan(scaled(20))
})
