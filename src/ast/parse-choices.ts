/** Choices among schedules: actions over the grammar's tree. */
import { fail } from './diagnostic.ts'
import type * as ast from './nodes.ts'
import { type Actions, all, blockItem, get, item, list, maybeList, slotsOf, spanOf } from './parse-context.ts'

export const choices: Actions = {
  Choice(_, kernel, _dot, name, params, _choose, open, list, close) {
    const branches = all<ast.Branch>(list)
    const rest = branches.findIndex((b) => b.cond === null)
    const late = rest < 0 ? undefined : branches[rest + 1]
    if (late)
      fail({
        code: 'parse/after-otherwise',
        message: 'nothing is left to choose after `otherwise`',
        span: late.span,
        labels: [{ span: branches[rest]!.span, text: 'this is for all others' }],
        hint: 'move `otherwise` to the end',
      })
    const node: ast.Choice = {
      kind: 'choice',
      kernel: get(kernel),
      name: get(name),
      params: maybeList(params),
      branches,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(branches))
  },
  Branch: (node, _) => get(node),
  When(_, _open, cond, _close, schedule, args) {
    return item<ast.Branch>({
      cond: get(cond),
      schedule: get(schedule),
      args: maybeList(args),
      span: spanOf(this),
    })
  },
  Otherwise(_, schedule, args) {
    return item<ast.Branch>({
      cond: null,
      schedule: get(schedule),
      args: maybeList(args),
      span: spanOf(this),
    })
  },
  NamedArgs(_, args, _close) {
    const all = list<ast.NamedArg>(args)
    const named = all.findIndex((a) => a.name !== null)
    const late = named < 0 ? undefined : all.find((a, k) => k > named && a.name === null)
    if (late)
      fail({
        code: 'parse/argument-order',
        message: 'an argument without a name follows one with a name',
        span: late.span,
        labels: [{ span: all[named]!.span, text: 'named here' }],
        hint: 'write it before, or name it too',
      })
    return all
  },
  NamedArg_named(name, _, value): ast.NamedArg {
    return { name: get(name), value: get(value), span: spanOf(this) }
  },
  NamedArg_place(value): ast.NamedArg {
    return { name: null, value: get(value), span: spanOf(this) }
  },
}
