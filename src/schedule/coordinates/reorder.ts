/**
 * `reorder (i, f, j)` on iterators: these iterators exchange their places in this order, and all other iterators stay
 * (SparseTIR's sparse_reorder); an iterator whose parent would come later follows its parent. Spatial iterators write
 * different elements and reductions commute, so any order in which every axis comes after its parent is legal.
 */
import { countedBy } from '../../ir/coordinates/axis.ts'
import type { Iter, Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { LoopRef } from '../names/kernel-names.ts'
import { coordPrimitive } from '../primitive.ts'
import * as arg from '../steps/arguments.ts'
import { findIters, keepParents, namesOf, parentsIn, refuse, replaceIteration } from './iterator-names.ts'

const takes = arg.takes(arg.iterators(1)('loops'))

function applyReorder(kernel: Kernel1, step: arg.StepOf<'reorder', typeof takes>): Kernel1 {
  const { iteration, iters } = findIters(kernel, step.loops)
  if (new Set(iters).size !== iters.length)
    refuse(kernel, 'schedule/repeated-loop', {
      message: 'an iterator is named twice',
      expected: 'each iterator once',
    })
  const queue = [...iters]
  const parents = new Map(parentsIn(kernel, iteration).map((u) => [u.iter, u.parent]))
  const places = iteration.iters.map((x) => (iters.includes(x) ? queue.shift()! : x))
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  /** Returns the iterators that must be outside of `x`: its parent, and the iterators that determine its extent. */
  const needs = (x: Iter): readonly Iter[] => {
    const parent = parents.get(x)
    const ends = countedBy(axes.get(x.axis))
    return [...(parent ? [parent] : []), ...places.filter((y) => ends.includes(y.axis))]
  }
  const order: Iter[] = []
  const waiting: Iter[] = []
  const follows = (x: Iter): boolean => needs(x).every((p) => !places.includes(p) || order.includes(p))
  for (const x of places) {
    waiting.push(x)
    for (let k = waiting.findIndex(follows); k >= 0; k = waiting.findIndex(follows))
      order.push(...waiting.splice(k, 1))
  }
  const wrong = iters.find((x, k) => k > 0 && order.indexOf(x) < order.indexOf(iters[k - 1]!))
  if (wrong) {
    const legal = order.filter((x) => iters.includes(x)).map((x) => x.name)
    // The iterator before `wrong` waited for another iterator, directly or through an iterator further out.
    const place = (x: Iter): number => places.indexOf(x)
    const tooEarly = (x: Iter): readonly [Iter, Iter] | undefined => {
      const late = needs(x).find((p) => place(p) > place(x))
      if (late) return [x, late]
      return needs(x)
        .map(tooEarly)
        .find((found) => found !== undefined)
    }
    const [child, above] = tooEarly(iters[iters.indexOf(wrong) - 1]!)!
    const isStored = parents.get(child) === above
    refuse(kernel, 'schedule/parent-first', {
      message: `${child.name} would come before ${above.name}, ${isStored ? 'the parent of the stored coordinates' : 'which determines its extent'}`,
      expected: `an axis after the parent: ${legal.join(', ')}`,
      hint:
        iters.includes(child) && iters.includes(above)
          ? `axis ${child.axis} ${isStored ? 'is stored under' : 'is counted for each of'} axis ${above.axis}: keep their order`
          : 'name the iterators of the whole chain, parents first',
    })
  }
  const by = { ...iteration, iters: order }
  const next = { ...kernel, body: replaceIteration(kernel.body, iteration, by) }
  return keepParents(kernel, iteration, next, by)
}

export const reorder = coordPrimitive({
  word: 'reorder',
  call: "reorder('f', 'j')",
  takes,
  given: (...loops: (LoopRef | readonly LoopRef[])[]) => ({ loops: namesOf(loops.flat()) }),
  apply: applyReorder,
})
