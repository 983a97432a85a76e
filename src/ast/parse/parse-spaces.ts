/** Spaces of schedules: parse actions for the grammar. */

import type * as ast from '../nodes/nodes.ts'
import { Writable } from './comments.ts'
import {
  type Actions,
  all,
  blockItem,
  get,
  item,
  list,
  maybe,
  maybeList,
  register,
  slotsOf,
  spanOf,
} from './parse-context.ts'
import type { OfKernel } from './parse-schedules.ts'
import { checkGroups } from './step-groups.ts'

export const spaces: Actions = {
  Choice_searched(_, kernel, _dot, name, params, _choose, _by, _search, open, items, close) {
    const innerNodes = all<ast.SpaceItem>(items)
    const node: ast.Space = {
      kind: 'choice',
      by: 'search',
      ...get<OfKernel>(kernel),
      name: get(name),
      params: maybeList(params),
      items: innerNodes,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(innerNodes))
  },
  SpaceItem_decision: (node, _) => get(node),
  FormatDecision(_, name, _in, options) {
    return item<ast.FormatDecision>({
      kind: 'formats',
      name: get(name),
      options: list(options),
      span: spanOf(this),
    })
  },
  FormatOption_parts(_, parts, _close, where): ast.FormatOption {
    return { parts: get(parts), where: maybe(where), span: spanOf(this) }
  },
  FormatOption_use(use, where): ast.FormatOption {
    const part = { ...get<ast.FormatUse>(use), where: null }
    return { parts: [part], where: maybe(where), span: spanOf(this) }
  },
  NumberDecision_list(name, _in, first, ops, others, where) {
    const otherWidths = all<Omit<ast.Width, 'doubling'>>(others)
    const widths = [
      { ...get<Omit<ast.Width, 'doubling'>>(first), doubling: false },
      ...otherWidths.map((w, k) => ({ ...w, doubling: ops.children[k]!.sourceString === '..' })),
    ]
    return item<ast.NumberDecision>({
      kind: 'numbers',
      name: get(name),
      values: { kind: 'list', widths },
      where: maybe(where),
      span: spanOf(this),
    })
  },
  NumberDecision_range(name, _from, from, _to, to, _by, by, where) {
    return item<ast.NumberDecision>({
      kind: 'numbers',
      name: get(name),
      values: { kind: 'range', from: get(from), to: get(to), by: maybe(by) },
      where: maybe(where),
      span: spanOf(this),
    })
  },
  Only(_, cond) {
    return item<ast.Only>({ kind: 'only', cond: get(cond), span: spanOf(this) })
  },
  SpaceStep(node, _) {
    const step = get<ast.SpaceStep>(node)
    return step.kind === 'each' || step.kind === 'either' ? step : item({ ...step, span: spanOf(node) })
  },
  UseAlternatives: (_, options) => ({ kind: 'uses', options: list(options) }),
  UseOption(schedule, args, results, where): ast.UseOption {
    return {
      schedule: get(schedule),
      args: checkGroups(maybeList<ast.UseArgument>(args)),
      results: maybeList(results),
      where: maybe(where),
      span: spanOf(this),
    }
  },
  Either(_, options) {
    const groups = list<ast.StepGroup>(options)
    const node: ast.Either = { kind: 'either', groups, span: spanOf(this) }
    const blocks = slotsOf(groups).flatMap((s) => s.blocks)
    register(node, { span: node.span, blocks, trivia: new Writable() })
    return node
  },
  StepGroup(open, steps, close, where) {
    const innerNodes = all<ast.SpaceStep>(steps)
    const node: ast.StepGroup = { steps: innerNodes, where: maybe(where), span: spanOf(this) }
    return blockItem(node, { open, close }, slotsOf(innerNodes))
  },
}
