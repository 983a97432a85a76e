/** Arguments of calls of kernels: inputs in order or by name, sizes and scalars by name, outputs on the left. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/parse/checks.ts'
import { errorCount, report } from '../diagnostics.ts'

/** A buffer of the callee, and the name that a call passes. */
interface Passed<N extends Ast.Ident> {
  readonly own: Ast.BufferDecl
  readonly at: N
}

export interface Arguments {
  /** Expressions for sizes and scalars that are passed by name. */
  readonly values: Map<string, Ast.Expr>
  readonly inputs: readonly Passed<Ast.Name>[]
  readonly outputs: readonly Passed<Ast.Ident>[]
}

/** The buffers that a call passes, in order. */
export const inputsOf = ({ members }: Ast.Kernel): readonly Ast.BufferDecl[] =>
  members.filter((m) => m.kind === 'buffer').filter((b) => b.role.name === 'in' || b.role.name === 'inout')

/** The arguments by parameter of the callee, or null after reported errors. */
export function argumentsOf(
  callee: Ast.Kernel,
  { args, results, span }: Pick<Ast.KernelCall, 'args' | 'results' | 'span'>,
): Arguments | null {
  const before = errorCount()
  const kernel = callee.name.name
  const buffers = callee.members.filter((m) => m.kind === 'buffer')
  const ins = inputsOf(callee)
  const outs = buffers.filter((b) => b.role.name === 'out')
  const values = new Map<string, Ast.Expr>()
  const inputs: { readonly own: Ast.BufferDecl; readonly at: Ast.Name }[] = []
  const form = `${kernel}(${[...ins.map((b) => b.name.name), ...callee.params.map((p) => `${p.name.name} = …`)].join(', ')})`
  const declaredAt = { labels: [{ span: callee.name.span, text: `kernel ${kernel} is declared here` }] }
  for (const [k, { name, value, span }] of args.entries()) {
    const param = name && callee.params.find((p) => p.name.name === name.name)
    const own = name ? ins.find((b) => b.name.name === name.name) : ins[k]
    const twice = own ? inputs.some((x) => x.own === own) : name !== null && values.has(name.name)
    const message = twice
      ? `${own?.name.name ?? name!.name} is passed twice`
      : !param && !own
        ? name
          ? `kernel ${kernel} has no input or size ${name.name}`
          : `kernel ${kernel} has ${quantity(ins.length, 'input')}`
        : own && value.kind !== 'name'
          ? `${own.name.name} of kernel ${kernel} is a buffer`
          : null
    if (message) report('check/call', span, { message, ...declaredAt, expected: form })
    else if (param) values.set(param.name.name, value)
    else inputs.push({ own: own!, at: value as Ast.Name })
  }
  const missing = ins.filter((b) => !inputs.some((x) => x.own === b))
  if (errorCount() === before && missing.length > 0)
    report('check/call', span, {
      message: `${missing.map((b) => b.name.name).join(', ')} of kernel ${kernel} ${missing.length > 1 ? 'are' : 'is'} not passed`,
      ...declaredAt,
      expected: form,
    })
  if (results.length > outs.length)
    report('check/call', results[outs.length]!.span, {
      message: `kernel ${kernel} has ${quantity(outs.length, 'output')}`,
      ...declaredAt,
      expected: outs.length === 0 ? 'a call without `=`' : outs.map((b) => b.name.name).join(', '),
    })
  const outputs = results.map((at, k) => ({ own: outs[k]!, at }))
  return errorCount() > before ? null : { values, inputs, outputs }
}
