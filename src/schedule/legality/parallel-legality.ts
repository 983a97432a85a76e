/**
 * Legality of parallel loops: conditions on bound loops that hold after any step. The conditions are checked on the
 * kernel that a step proposes, and an error prints the current kernel.
 */

import { lanesIn } from '../../analysis/instructions/lane-groups.ts'
import { groupsOf, withoutStart } from '../../analysis/loops/balanced-partition.ts'
import { pipelineSequence } from '../../analysis/loops/pipeline-sequence.ts'
import { copiesOf, segmentsOf, unrolledSize } from '../../analysis/loops/segmented-loops.ts'
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { countText, MAX_NEST, MAX_UNROLLED } from '../../ir/code-size-budgets.ts'
import type { ThreadAxis } from '../../ir/expressions/expr.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { differing } from '../../ir/lists.ts'
import { allocations, findLoop, loopsOf } from '../../ir/statements/definitions.ts'
import type { Kernel2, LoopMode, Stmt } from '../../ir/statements/loops.ts'
import { elementChanges, reductionsOf } from '../../ir/statements/reductions.ts'
import { stmt, walkStmts } from '../../ir/statements/tree.ts'
import { checkInstr } from '../loops/mapping/tensorize.ts'
import type { Context } from '../state/context.ts'
import { isAlone } from './loop-dependence.ts'
import { checkAllocations } from './memory-scopes.ts'

type Accumulate = LoopMode & { readonly kind: 'accumulate' }

/** The maximum number of threads of a block on all supported devices. */
const THREAD_LIMIT = 1024

/**
 * Checks the loop nests that the step changed; threads of different loop nests never interact. @param unrolls whether
 * the step only unrolls a loop
 */
export function checkParallel(cx: Context, proposed: Kernel2, unrolls = false): void {
  const [gone, come] = differing(cx.kernel.body, proposed.body)
  const next: Kernel2 = { ...proposed, body: come.filter((s) => !gone.includes(s)) }
  if (next.body.length === 0) return
  // Most steps come before the modes that most checks are about.
  const modes = new Set(loopsOf(next.body).map((l) => l.mode.kind))
  const lanes = next.body.some((s) => lanesIn([s]).count > 1)
  const isBound = modes.has('bind')
  if (!unrolls) {
    checkDepth(cx, next)
    if (isBound) checkAxes(cx, next)
    if (isBound) checkBlocks(cx, next)
    if (isBound || lanes) checkThreadCount(cx, next)
    if (modes.has('vectorize')) checkVectors(cx, next)
    if (isBound) checkShares(cx, next)
    if (allocations(next.body).size > 0) checkAllocations(cx, next)
  }
  if (lanes || modes.has('instr')) checkInstructions(cx, next)
  if (modes.has('unroll') || modes.has('vectorize')) checkUnrolled(cx, next)
  if (modes.has('accumulate')) checkAccumulated(cx, next)
  if (modes.has('pipeline')) checkContinued(cx, next)
}

/** A pipeline that continues over a loop around has to stay one sequence. */
function checkContinued(cx: Context, next: Kernel2): void {
  for (const top of next.body)
    for (const { var: v, mode } of loopsOf([top])) {
      const found = mode.kind === 'pipeline' && mode.continued && pipelineSequence([top], v)
      if (!found || 'over' in found) continue
      const { loops, ...problem } = found
      cx.refuse('schedule/not-one-sequence', loops, { ...problem, hint: 'take this step before pipeline' })
    }
}

/**
 * Throws `schedule/no-shares` or `schedule/no-groups` if a step changes the chunks of an accumulated loop, whose sums
 * go to a fixed place, or if the chunks that a block combines in shared memory would not be one group.
 */
function checkAccumulated(cx: Context, next: Kernel2): void {
  for (const top of next.body)
    for (const { var: v, mode } of loopsOf([top]))
      if (mode.kind === 'accumulate' && (mode.carry !== undefined || mode.within !== undefined))
        checkShared(cx, top, v, mode)
}

function checkShared(
  cx: Context,
  top: Stmt,
  v: string,
  { carry, within, partition: shares }: Accumulate,
): void {
  const { loop, path } = findLoop([carry === undefined ? top : withoutStart(top, carry)], v)!
  const segments = segmentsOf(stmt({ ...loop, mode: { kind: 'serial' } }))
  const groups = within === undefined || !shares ? undefined : groupsOf(shares, within, path, loop)
  const broken = typeof segments === 'string' ? segments : typeof groups === 'string' ? groups : undefined
  if (broken !== undefined)
    cx.refuse('schedule/no-shares', [loop], {
      message: `the chunks of ${loop.name} would lose their known common part: ${broken}`,
      hint: 'accumulate after this step',
    })
  const at = path.findIndex((l) => l.var === within)
  const other = path.slice(0, Math.max(0, at)).find((l) => boundIndex(l, 'thread'))
  if (other)
    cx.refuse('schedule/no-groups', [other, path[at]!, loop], {
      message: `${other.name} around ${path[at]!.name} would give a block several groups of chunks, and ${loop.name} has memory for a single group`,
      hint: `bind ${other.name} to a block axis`,
    })
}

function checkUnrolled(cx: Context, next: Kernel2): void {
  for (const top of next.body) {
    const statements = unrolledSize([top])
    if (statements <= MAX_UNROLLED) continue
    const unrolled = loopsOf([top]).filter((l) => copiesOf(l) > 1)
    if (unrolled.length === 0) continue
    const factors = unrolled.map((l) => `${l.name} ${countText(copiesOf(l))}`)
    cx.refuse('schedule/too-many-copies', unrolled, {
      message: `the unrolled loops of ${unrolled[0]!.nest} would make ${countText(statements)} statements (${factors.join(', ')} copies)`,
      expected: `at most ${countText(MAX_UNROLLED)}`,
      hint: 'unroll the inner loops only, or by a factor',
    })
  }
}

function checkDepth(cx: Context, next: Kernel2): void {
  for (const top of next.body) {
    // Most loop nests have fewer loops in total.
    if (loopsOf([top]).length <= MAX_NEST) continue
    walkStmts([top], (s, path) => {
      if (s.kind !== 'for' || path.length < MAX_NEST) return
      const outer = path[0]!
      cx.refuse('schedule/too-deep', [outer], {
        message: `${outer.nest} would have ${path.length + 1} loops within each other`,
        expected: `at most ${MAX_NEST}`,
        hint: 'split fewer loops, or unroll the finely split loops',
      })
    })
  }
}

function checkAxes(cx: Context, next: Kernel2): void {
  const isRepeated = next.body.some((top) => {
    const axes = loopsOf([top]).flatMap((l) => (l.mode.kind === 'bind' ? [l.mode.to] : []))
    return new Set(axes).size < axes.length
  })
  if (!isRepeated) return
  walkStmts(next.body, (s, path) => {
    if (s.kind !== 'for' || s.mode.kind !== 'bind') return
    const { to } = s.mode
    const outer = path.find((l) => l.mode.kind === 'bind' && l.mode.to === to)
    if (outer)
      cx.refuse('schedule/axis-taken', [outer, s], {
        message: `${s.name} and the enclosing loop ${outer.name} are both bound to ${to}`,
        hint: `bind ${s.name} or ${outer.name} to another axis`,
      })
  })
}

/** Blocks run in any order and share no barrier. */
function checkBlocks(cx: Context, next: Kernel2): void {
  for (const top of next.body) {
    const bound = loopsOf([top]).find((l) => boundIndex(l, 'block'))
    invariant(
      !bound || isAlone(top),
      () => `other statements stand beside the block-bound loop ${bound!.name}`,
    )
  }
  walkStmts(next.body, (s, path) => {
    if (s.kind !== 'for' || !boundIndex(s, 'block')) return
    const beside = path.find(
      (l, k) => !boundIndex(l, 'block') || l.body.length > 1 || l.body[0] !== (path[k + 1] ?? s),
    )
    if (beside)
      cx.refuse('schedule/block-not-outermost', [beside, s], {
        message: boundIndex(beside, 'block')
          ? `${beside.name} has other statements next to the block-bound loop ${s.name}`
          : `${s.name} is bound to a block axis inside of ${beside.name}, which is not`,
        expected: 'block-bound loops outermost, directly inside of each other',
        hint: `reorder ${s.name} outwards, or bind ${s.name} to a thread axis`,
      })
  })
}

function checkThreadCount(cx: Context, next: Kernel2): void {
  for (const top of next.body) {
    const extents = new Map<ThreadAxis, number>()
    const bound = loopsOf([top]).filter((l) => boundIndex(l, 'thread'))
    for (const l of bound) {
      if (l.mode.kind !== 'bind' || l.extent.kind !== 'const') continue
      extents.set(l.mode.to, Math.max(extents.get(l.mode.to) ?? 1, l.extent.value))
    }
    extents.set('thread.x', Math.max(extents.get('thread.x') ?? 1, lanesIn([top]).count))
    const threads = [...extents.values()].reduce((x, y) => x * y, 1)
    if (threads > THREAD_LIMIT)
      cx.refuse('schedule/too-many-threads', bound, {
        message: `a block would have ${threads} threads`,
        expected: `at most ${THREAD_LIMIT}`,
        hint: 'split a loop and bind the smaller loop',
      })
  }
}

function checkVectors(cx: Context, next: Kernel2): void {
  for (const l of loopsOf(next.body))
    if (l.mode.kind === 'vectorize' && loopsOf(l.body).length > 0)
      cx.refuse('schedule/not-innermost', [l], {
        message: `the vector loop ${l.name} has to stay innermost`,
        hint: 'take this step before vectorize',
      })
}

/** The loops of an instruction have to match it, and loops on thread.x the threads that execute instructions. */
function checkInstructions(cx: Context, next: Kernel2): void {
  for (const l of loopsOf(next.body)) {
    const found = l.mode.kind === 'instr' ? findLoop(next.body, l.var) : undefined
    if (l.mode.kind === 'instr' && found) checkInstr(cx, next, found, l.mode.instr)
  }
  for (const top of next.body) {
    const { count } = lanesIn([top])
    if (count === 1) continue
    const other = loopsOf([top]).find(
      (l) =>
        l.mode.kind === 'bind' &&
        l.mode.to === 'thread.x' &&
        (l.extent.kind !== 'const' || l.extent.value > count || count % l.extent.value !== 0),
    )
    if (other)
      cx.refuse('schedule/not-idle', [other], {
        message: `thread.x is ${count} threads that do instructions together, and ${other.name} needs different threads`,
        hint: `bind ${other.name} to thread.y, or split ${other.name} by ${count}`,
      })
  }
}

/**
 * Throws `schedule/scattered` or `schedule/extent-not-constant` unless threads can reduce together: each thread keeps
 * its partial results in registers, and one thread updates the elements at the end. The number of elements must be
 * constant, and the elements must be the same in every iteration of a reduction loop, around the threads or inside.
 */
function checkShares(cx: Context, next: Kernel2): void {
  for (const { reduce, path } of reductionsOf(next.body)) {
    const root = path.findIndex((l) => l.reduce && !boundIndex(l, 'block'))
    const inside = root < 0 ? [] : path.slice(root)
    const threads = inside.filter((l) => l.reduce && boundIndex(l, 'thread'))
    if (threads.length === 0) continue
    const changing = inside.filter((l) => elementChanges(reduce, l))
    const scattered = changing.find((l) => l.reduce)
    if (scattered && reduce.atomic) continue
    if (scattered)
      cx.refuse('schedule/scattered', [scattered, ...threads], {
        message: `the element of ${reduce.targets[0]!.buffer} that threads would combine changes with the reduction loop ${scattered.name}`,
        hint: 'make the updates atomic first',
      })
    const open = changing.find((l) => !l.reduce && !boundIndex(l, 'thread') && l.extent.kind !== 'const')
    if (open)
      cx.refuse('schedule/extent-not-constant', [inside[0]!, open], {
        message: `threads would reduce ${reduce.targets[0]!.buffer} together inside of which ${open.name} has no constant extent, so no thread can keep a part in registers`,
        hint: `reorder ${open.name} outwards, or split ${open.name} and put the outer loop outside`,
      })
  }
}
