/** Schedules: parse actions for the grammar. */

import * as ast from '../nodes/nodes.ts'
import { bindTarget, typeName } from './checks.ts'
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
  word,
} from './parse-context.ts'
import { checkGroups, groupOf, mapGroup } from './step-groups.ts'

type LoopValue = Extract<ast.StepValue, { kind: 'loop' }>

const loopIn = (nest: ast.Ident, name: ast.Ident): ast.LoopRef => ({
  nest,
  name,
  span: between(nest.span, name.span),
})
const loopValue = (loop: ast.LoopRef): LoopValue => ({ kind: 'loop', loop })
const loopList = (loops: readonly ast.LoopRef[]): ast.StepValue => ({
  kind: 'list',
  parentheses: true,
  items: loops.map(loopValue),
})

/** A kernel in the head of a schedule or space. */
export type OfKernel = Pick<ast.ScheduleName, 'kernel' | 'types'>

export const schedules: Actions = {
  OfKernel: (name, _open, types, _close): OfKernel => ({
    kernel: get(name),
    types: types.children[0] ? list(types.children[0]) : [],
  }),
  TypeChoice: (types) => list<ast.Ident>(types).map((t) => typeName(t, ast.SCALAR_TYPES)),
  Schedule(_, kernel, _dot, name, params, open, steps, close) {
    const body = all<ast.Step>(steps)
    return blockItem<ast.Schedule>(
      {
        kind: 'schedule',
        ...get<OfKernel>(kernel),
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
  ScheduleParam(name, _, kind, _eq, value): ast.ScheduleParam {
    const [given] = kind.children
    const paramKind = given ? typeName(word(given), ast.PARAM_KINDS).name : 'size'
    return { name: get(name), kind: paramKind, default: maybe(value), span: spanOf(this) }
  },
  Function(_, name, params, results, open, steps, close) {
    const body = all<ast.Step>(steps)
    const node: ast.ScheduleFunction = {
      kind: 'function',
      name: get(name),
      params: get(params),
      results: maybeList(results),
      steps: body,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(body))
  },
  Results: (_, names) => get(names),
  Steps: (steps) => all(steps),
  Step(node, _) {
    const step = get<ast.Step>(node)
    return step.kind === 'each' ? step : item({ ...step, span: spanOf(node) })
  },
  StepAs: (buffer, _, parts, live) => ({
    kind: 'as',
    buffer: get(buffer),
    parts: get(parts),
    live: maybe(live),
  }),
  Live(_, inPlace, capacity, carried): ast.Live {
    return {
      inPlace: inPlace.sourceString !== '',
      capacity: maybe(capacity),
      carried: maybeList(carried),
      span: spanOf(this),
    }
  },
  Carried: (_, names) => list(names),
  Capacity(_, positions, inAll, _all): ast.Capacity {
    return { positions: get(positions), inAll: inAll.sourceString !== '', span: spanOf(this) }
  },
  AsParts: (parts) => list(parts),
  AsPart(use, where): ast.AsPart {
    return { ...get<ast.FormatUse>(use), where: maybe(where), span: spanOf(this) }
  },
  StepEach(_, what, _of, buffer, _as, as, open, steps, close) {
    const stepNodes = all<ast.Step>(steps)
    const names = { buffer: get<ast.Ident>(buffer), as: get<ast.Ident>(as) }
    const target = what.sourceString === 'nest' ? 'nest' : 'part'
    const node: ast.EachStep = { kind: 'each', what: target, ...names, steps: stepNodes, span: spanOf(this) }
    return blockItem(node, { open, close }, slotsOf(stepNodes))
  },
  StepMerge: (_, _parts, _of, buffer) => ({ kind: 'merge_parts', buffer: get(buffer) }),
  StepUse: (_, schedule, args, results) => ({
    kind: 'use',
    schedule: get(schedule),
    args: checkGroups(maybeList<ast.UseArgument>(args)),
    results: maybeList(results),
  }),
  UseArgs: (_, args, _close) => list(args),
  UseArg_nests(nests, _, name): ast.UseArgument {
    const field = get<ast.Ident>(name)
    const items = get<ast.Ident[]>(nests).map((object): ast.Field => {
      return { kind: 'field', object, field, span: between(object.span, field.span) }
    })
    return { kind: 'group', items, span: spanOf(this) }
  },
  UseArg_loops(loops): ast.UseArgument {
    const items = get<ast.LoopRef[]>(loops).map(({ nest, name, span }): ast.Expr => {
      return nest
        ? { kind: 'field', object: nest, field: name, span }
        : { kind: 'name', name: name.name, span }
    })
    return { kind: 'group', items, span: spanOf(this) }
  },
  UseArg_one: (e) => get(e),
  Loop(first, _, second): ast.LoopRef {
    const name = maybe<ast.Ident>(second)
    const id = get<ast.Ident>(first)
    return name ? { nest: id, name, span: spanOf(this) } : { nest: null, name: id, span: spanOf(this) }
  },
  Several: (_, first, _comma, others, _close) => [get(first), ...list(others)],
  LoopGroup_nests(nests, _, name) {
    const loops = get<ast.Ident[]>(nests).map((nest) => loopIn(nest, get(name)))
    return groupOf(loops.map(loopValue), spanOf(this))
  },
  LoopGroup_loops(loops) {
    return groupOf(get<ast.LoopRef[]>(loops).map(loopValue), spanOf(this))
  },
  LoopGroup_one: (loop) => loopValue(get(loop)),
  LoopLists_nests(nests, _, _open, names, _close) {
    const loopNames = list<ast.Ident>(names)
    const listIn = (nest: ast.Ident) => loopList(loopNames.map((name) => loopIn(nest, name)))
    return groupOf(get<ast.Ident[]>(nests).map(listIn), spanOf(this))
  },
  LoopLists_one: (_, loops, _close) => loopList(list(loops)),
  NameGroup_names: (names) => get(names),
  NameGroup_one: (name) => [get(name)],
  Binding(loops, _, target): ast.StepValue {
    const to = bindTarget(target.sourceString, spanOf(target))
    return mapGroup(get(loops), (v) => ({ kind: 'binding', loop: (v as LoopValue).loop, to }))
  },
  Place_count(digits): ast.StepValue {
    return { kind: 'word', text: digits.sourceString, means: Number(digits.sourceString) }
  },
  Place_nest(name): ast.StepValue {
    return { kind: 'name', of: 'nest', name: get(name) }
  },
  Args: (_, args, _close) => list(args),
}
