/**
 * `fuse (i, j)` on iterators: one iterator over all stored positions of the last axis, from which the outer
 * coordinates are recovered (SparseTIR's sparse_fuse). The iterators must be a complete parent → child chain from a
 * root, because a gap would lose an axis.
 */
import { isName } from '../../ast/nodes/names.ts'
import { type Axis, fusedAxis, isFused, isStored, parentOf } from '../../ir/coordinates/axis.ts'
import type { Iter, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { iterationsOf, rewriteBody1 } from '../../ir/coordinates/stage1-tree.ts'
import { variable } from '../../ir/expressions/expr.ts'
import { mixedReduction } from '../legality/loop-dependence.ts'
import type { LoopRef } from '../names/kernel-names.ts'
import { coordPrimitive } from '../primitive.ts'
import * as arg from '../steps/arguments.ts'
import { findIters, keepParents, namesOf, parentsIn, refuse, replaceIteration } from './iterator-names.ts'
import { areCounted, countedFor, withOffsets } from './live/offsets.ts'

const takes = arg.takes(arg.iterators(2)('loops'), arg.optional('->', arg.newLoop('into')))

function applyFuse(given: Kernel1, step: arg.StepOf<'fuse', typeof takes>): Kernel1 {
  const { iteration, iters } = findIters(given, step.loops)
  const axesOf = (k: Kernel1) => new Map(k.axes.map((a) => [a.name, a]))
  const chainIn = (k: Kernel1) => iters.map((x) => axesOf(k).get(x.axis)!)
  // Lists that are built at run time have offsets from here on.
  const kernel = areCounted(given, chainIn(given)) ? withOffsets(given, chainIn(given)) : given
  const chain = chainIn(kernel)
  // Independent axes are fused as loops, which must be all spatial or all reductions.
  const isOwn = (a: Axis): boolean => parentOf(a) === null && countedFor(kernel, a).length === 0
  if (chain.slice(1).some(isOwn) && iters.some((x) => x.kind !== iters[0]!.kind))
    refuse(
      kernel,
      'schedule/mixed-reduction',
      mixedReduction(iters.map(({ name, kind }) => ({ name, reduce: kind === 'R' }))),
    )
  chain.forEach((axis, k) => {
    const parent = !isStored(axis) ? undefined : parentOf(axis)
    const wanted = k === 0 ? null : chain[k - 1]!.name
    const counted = countedFor(kernel, axis)
    if (parent !== wanted)
      refuse(kernel, 'schedule/not-a-chain', {
        message:
          k === 0
            ? `axis ${axis.name} is not a root`
            : `axis ${axis.name} is not stored under axis ${wanted}`,
        expected: 'iterators over a parent → child chain of axes that starts at a root, none left out',
        hint: parent
          ? `axis ${axis.name} is under ${parent}: fuse that too`
          : counted.length > 0
            ? `${axis.name} is counted for each of ${counted.join(', ')}: fuse (${[...counted, axis.name].join(', ')})`
            : 'the loops must be perfectly nested: reorder the loops first',
      })
  })
  const parents = new Map(parentsIn(kernel, iteration).map((u) => [u.iter, u.parent]))
  iters.forEach((x, k) => {
    const parent = parents.get(x) ?? null
    if (k > 0 && parent !== iters[k - 1])
      refuse(kernel, 'schedule/not-a-chain', {
        message: `${x.name} is nested in ${parent?.name}, not in ${iters[k - 1]!.name}, which runs over the same axis`,
        expected: 'each iterator with the parent iterator',
        hint: `fuse ${parent?.name} with ${x.name}`,
      })
  })
  const name = step.into ?? joined(iters.map((x) => x.name))
  const members = chain.map((a) => a.name)
  // Another iteration may already run over the same fused axis.
  const same = kernel.axes.find((a) => a.name === name && isFused(a) && a.members.join() === members.join())
  const taken = [
    ...kernel.axes.map((a) => a.name),
    ...kernel.params.map((p) => p.name),
    ...kernel.buffers.map((b) => b.name),
    ...iterationsOf(kernel.body).flatMap((it) => it.iters.map((x) => x.name)),
  ]
  if (!same && taken.includes(name))
    refuse(kernel, 'schedule/name-taken', {
      message: `the name ${name} is taken`,
      expected: 'a new name',
      hint: `write fuse (${step.loops.join(', ')}) -> another`,
    })
  const around = iterationsOf(kernel.body).filter((o) => iterationsOf(o.body).includes(iteration))
  const seen = [...around, iteration, ...iterationsOf(iteration.body)].flatMap((o) => o.iters)
  const other = seen.find((x) => !iters.includes(x) && chain.some((a) => a.name === x.name))
  if (other)
    refuse(kernel, 'schedule/name-taken', {
      message: `iterator ${other.name} has the name of axis ${other.name}, which is fused`,
      expected: 'iterator names that differ from the fused axes',
      hint: `rename iterator ${other.name}`,
    })
  const fused: Iter = {
    name,
    axis: name,
    kind: iters.every((x) => x.kind === 'S') ? 'S' : 'R',
    span: iters[0]!.span,
  }
  // Inside of the iteration, the members have the names of their axes.
  const rename = new Map(iters.map((x) => [x.name, variable(x.axis)]))
  const first = iteration.iters.findIndex((x) => iters.includes(x))
  const rest = iteration.iters.filter((x) => !iters.includes(x))
  const before = iteration.iters.slice(0, first).filter((x) => !iters.includes(x)).length
  const [renamed] = rewriteBody1([iteration], (e) => (e.kind === 'var' ? rename.get(e.name) : undefined))
  if (renamed?.kind !== 'iterate') return kernel
  const by = { ...renamed, iters: [...rest.slice(0, before), fused, ...rest.slice(before)] }
  const next: Kernel1 = {
    ...kernel,
    axes: same ? kernel.axes : [...kernel.axes, fusedAxis(name, members)],
    body: replaceIteration(kernel.body, iteration, by),
  }
  return keepParents(kernel, iteration, next, by, (x) => (iters.includes(x) ? fused : x))
}

export const fuse = coordPrimitive({
  word: 'fuse',
  call: "fuse(['i', 'j'], 'ij')",
  takes,
  given: (loops: readonly LoopRef[], into?: string) => ({ loops: namesOf(loops), into }),
  apply: applyFuse,
})

/** Returns the concatenated names, such as `ij`; joined by `_` if the concatenation is a keyword. */
const joined = (names: readonly string[]): string =>
  isName(names.join('')) ? names.join('') : names.join('_')
