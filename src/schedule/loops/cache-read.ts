import { int, load } from '../../ir/expr.ts'
import type { Buffer } from '../../ir/loops.ts'
import { replaceLoop, stmt } from '../../ir/tree.ts'
import { checkOneNest } from '../checks.ts'
import { allocatedIn } from '../depend.ts'
import {
  checkStable,
  copyNest,
  type Footprint,
  footprint,
  localIndex,
  readConditions,
  replaceLoads,
  usesOf,
} from '../footprint.ts'
import type { Primitive } from '../primitive.ts'
import { featureMajor } from '../samples.ts'
import type { CacheReadStep } from '../steps.ts'

/**
 * `cache_read B at jo in shared -> Bs`: in each iteration of `jo`, what the iteration reads of `B` is copied
 * before the first use, and read from the copy. The copy has one dimension for each inner loop that the index depends on
 * (constant extents), so gathers (`B[j_indices[…], f]`) are copied like the rest. A shared copy has a dimension
 * for each thread-bound loop around, too, that the index depends on.
 *
 * Refused where the reads differ in their index, may not happen, or where the loop also writes the buffer.
 */
export const cacheRead: Primitive<CacheReadStep> = {
  kind: 'cache_read',
  apply(cx, step) {
    const at = cx.loop(step.at)
    const { loop } = at
    checkOneNest(cx, loop, 'cache_read')
    const buffer = cx.buffer(step.buffer)
    if (buffer.scope === 'register')
      cx.refuse({ code: 'in-registers', message: `${buffer.name} is in registers already`, loops: [loop] })
    const uses = usesOf(loop.body, buffer.name)
    if (uses.length === 0 || allocatedIn(loop.body).has(buffer.name))
      cx.refuse({
        code: 'not-read',
        message: `${loop.name} does not read ${buffer.name} from outside`,
        loops: [loop],
        hint: 'cache at a loop around the reads',
      })
    if (uses.some((u) => u.mode === 'write'))
      cx.refuse({
        code: 'written-too',
        message: `${loop.name} writes ${buffer.name} as well: a copy would go stale`,
        loops: [loop],
        hint: `cache_write ${buffer.name}, or cache further inside`,
      })
    if (uses.some((u) => u.conditional))
      cx.refuse({
        code: 'conditional-read',
        message: `whether ${loop.name} reads ${buffer.name} depends on a condition, and a copy would always read it`,
        loops: [loop],
      })
    const plain = footprint(cx, at, buffer, uses, step.scope)
    const recursive = plain.loops.find((l) => usesOf([{ ...l, body: [] }], buffer.name).length > 0)
    if (recursive)
      cx.refuse({
        code: 'decides-itself',
        message: `how ${recursive.name} runs depends on ${buffer.name} itself`,
        loops: [recursive],
        hint: `cache at ${recursive.name}, or further inside`,
      })
    const print: Footprint = { ...plain, conditions: readConditions(cx, at, uses) }
    // Just before the first use: copies that the index itself reads from stand before it.
    const first = Math.min(...uses.map((u) => u.child))
    checkStable(cx, loop, print, first)
    const name = step.into ? cx.claim(step.into) : cx.fresh(`${buffer.name}_${step.scope}`)
    const local: Buffer = Object.freeze({
      ...buffer,
      name,
      scope: step.scope,
      role: 'local',
      shape: print.shape.map(int),
      fill: 0,
      accumulate: buffer.dtype,
    })
    const copy = copyNest(cx, print, name, step.scope, (index, element) =>
      stmt({
        kind: 'store',
        buffer: name,
        index,
        value: load(buffer.name, print.index.map(element), buffer.dtype),
      }),
    )
    const body = replaceLoads(loop.body, buffer.name, (index, path) =>
      load(name, localIndex(print, { index, path }), buffer.dtype),
    )
    return {
      body: replaceLoop(cx.kernel.body, loop.var, (l) =>
        stmt({
          ...l,
          body: [...body.slice(0, first), stmt({ kind: 'alloc', buffer: local }), copy, ...body.slice(first)],
        }),
      ),
    }
  },
  example: {
    before: featureMajor,
    step: { kind: 'cache_read', buffer: 'A', at: 'j', scope: 'register', into: 'Ar' },
    after: `\
for i in 0..m
  for f in 0..32
    for j in 0..j_indptr[i + 1] - j_indptr[i]  reduce
      alloc Ar: f32[1] register
      Ar[0] = A[j_indptr[i] + j]
      C[i, f] += Ar[0] * B[j_indices[j_indptr[i] + j], f]  init`,
  },
}
