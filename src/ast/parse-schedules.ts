/** Schedules: actions over the grammar's tree. */
import { bindTarget, into, sameNumber } from './checks.ts'
import type * as ast from './nodes.ts'
import {
  type Actions,
  all,
  between,
  blockItem,
  get,
  item,
  list,
  maybe,
  maybeList,
  slotsOf,
  spanOf,
} from './parse-context.ts'

export const schedules: Actions = {
  Schedule(_, kernel, _dot, name, params, open, steps, close) {
    const body = all<ast.Step>(steps)
    return blockItem<ast.Schedule>(
      {
        kind: 'schedule',
        kernel: get(kernel),
        name: get(name),
        params: maybeList(params),
        steps: body,
        span: spanOf(this),
      },
      { open, close },
      slotsOf(body),
    )
  },
  ScheduleParams: (_, params, _close) => list(params),
  ScheduleParam(name, _, value): ast.ScheduleParam {
    return { name: get(name), default: maybe(value), span: spanOf(this) }
  },
  Steps: (steps) => all(steps),
  Step(node, _) {
    const made = get<ast.Step>(node)
    return made.kind === 'each' ? made : item({ ...made, span: spanOf(node) })
  },
  StepAs: (buffer, _, parts) => ({ kind: 'as', buffer: get(buffer), parts: get(parts) }),
  AsParts: (parts) => list(parts),
  AsPart(use, where): ast.AsPart {
    return { ...get<ast.FormatUse>(use), where: maybe(where), span: spanOf(this) }
  },
  StepEach(_, _part, _of, buffer, _as, as, open, steps, close) {
    const inside = all<ast.Step>(steps)
    const names = { buffer: get<ast.Ident>(buffer), as: get<ast.Ident>(as) }
    const node: ast.EachStep = { kind: 'each', ...names, steps: inside, span: spanOf(this) }
    return blockItem(node, { open, close }, slotsOf(inside))
  },
  StepWord_split(_, loop, by, _arrow, names) {
    return { kind: 'split', loop: get(loop), by: get(by), into: into(maybe(names), 2, spanOf(this)) }
  },
  StepWord_bind: (_, binds) => ({ kind: 'bind', binds: list(binds) }),
  StepWord_reorder: (_, loops) => ({ kind: 'reorder', loops: get(loops) }),
  StepWord_serpentine: (_, loop, by) => ({ kind: 'serpentine', loop: get(loop), by: get(by) }),
  StepWord_fuse: (_, loops, name) => ({ kind: 'fuse', loops: get(loops), into: maybe(name) }),
  StepWord_tile(_, loops, kwBy, _open, by, close, _arrow, names) {
    const tiled = get<ast.LoopRef[]>(loops)
    const factors = list<ast.Expr>(by)
    sameNumber(
      { what: 'loop', length: tiled.length, span: spanOf(loops) },
      { what: 'factor', length: factors.length, span: between(spanOf(kwBy), spanOf(close)) },
    )
    return {
      kind: 'tile',
      loops: tiled,
      by: factors,
      into: into(maybe(names), 2 * tiled.length, spanOf(this)),
    }
  },
  StepWord_unroll: (_, loop, by, word) => ({
    kind: 'unroll',
    loop: get(loop),
    by: maybe(by),
    predicated: (word.children[0]?.sourceString ?? '') !== '',
  }),
  StepWord_vectorize: (_, loop) => ({ kind: 'vectorize', loop: get(loop) }),
  StepWord_requireMultiple: (_, size, _mod, by, _eq, _zero) => ({
    kind: 'require',
    size: get(size),
    relation: 'multiple',
    by: get(by),
  }),
  StepWord_requireEqual: (_, size, _eq, by) => ({
    kind: 'require',
    size: get(size),
    relation: 'equal',
    by: get(by),
  }),
  StepWord_tensorize: (_, loop, _with, instr) => ({ kind: 'tensorize', loop: get(loop), instr: get(instr) }),
  StepWord_cacheRead: (_, buffer, at, _in, memory, layout, name) => ({
    kind: 'cache_read',
    buffer: get(buffer),
    at: get(at),
    memory: get(memory),
    layout: get(layout),
    into: maybe(name),
  }),
  StepWord_cacheWrite: (_, buffer, at, _in, memory, name) => ({
    kind: 'cache_write',
    buffer: get(buffer),
    at: get(at),
    memory: get(memory),
    into: maybe(name),
  }),
  StepWord_cluster: (_, loop, by) => ({ kind: 'cluster', loop: get(loop), by: get(by) }),
  StepWord_pipeline: (_, loop, by) => ({ kind: 'pipeline', loop: get(loop), by: get(by) }),
  StepWord_computeAt: (_, iteration, at) => ({ kind: 'compute_at', iteration: get(iteration), at: get(at) }),
  StepWord_fission: (_, loop, _after, after) => ({ kind: 'fission', loop: get(loop), after: get(after) }),
  statementCount(_digits) {
    return Number(this.sourceString)
  },
  StepWord_rfactor: (_, loop, name) => ({ kind: 'rfactor', loop: get(loop), into: maybe(name) }),
  StepWord_atomic: (_, buffer) => ({ kind: 'atomic', buffer: get(buffer) }),
  StepWord_accumulate: (_, buffer, _over, loop, by, _within, within, name) => ({
    kind: 'accumulate',
    buffer: get(buffer),
    loop: get(loop),
    by: maybe(by),
    within: maybe(within),
    into: maybe(name),
  }),
  StepWord_combine: (_, buffer, _in, nest) => ({ kind: 'combine', buffer: get(buffer), nest: maybe(nest) }),
  StepWord_attach: (_, loop, _to, to) => ({ kind: 'attach', loop: get(loop), to: get(to) }),
  StepWord_mergeParts: (_, _parts, _of, buffer) => ({ kind: 'merge_parts', buffer: get(buffer) }),
  StepWord_merge: (_, nests) => ({ kind: 'merge', nests: get(nests) }),
  StepWord_use: (_, schedule, args) => ({ kind: 'use', schedule: get(schedule), args: maybeList(args) }),
  Binding(loop, _, target): ast.Binding {
    return { loop: get(loop), to: bindTarget(target.sourceString, spanOf(target)), span: spanOf(this) }
  },
  Loops: (_, loops, _close) => list(loops),
  Loop(first, _, second): ast.LoopRef {
    const name = maybe<ast.Ident>(second)
    const id = get<ast.Ident>(first)
    return name ? { nest: id, name, span: spanOf(this) } : { nest: null, name: id, span: spanOf(this) }
  },
  At: (_, loop) => get(loop),
  By: (_, factor) => get(factor),
  Into: (_, name) => get(name),
  CopyLayout(transposed, _stride, stride, _by, by, _padded, padded): ast.CopyLayout {
    return {
      transposed: transposed.numChildren > 0,
      stride: maybe(stride),
      by: maybe(by),
      padded: maybe(padded),
    }
  },
  Args: (_, args, _close) => list(args),
}
