/** Programs whose last kernel calls another one, and has its results. */
import type * as Ast from '../../src/ast/nodes/nodes.ts'
import { SCALAR_TYPES } from '../../src/ast/nodes/nodes.ts'
import { mapSyntax } from '../../src/ast/nodes/walk.ts'
import { print } from '../../src/ast/print/print.ts'
import { programOf } from '../../src/schedule/steps/language.ts'

/** Words that the text has in the places of names: roles and types. */
const WORDS = new Set<string>(['in', 'out', 'inout', 'local', 'size', ...SCALAR_TYPES])

/**
 * A program with the last kernel under other names, and a kernel with the original names that calls it; null if names
 * of the kernel are words of the language, too.
 * @param of - Program and name of a kernel with the same interface, which is called instead
 */
export function calling(
  text: string,
  of?: { readonly program: string; readonly name: string },
): string | null {
  const file = programOf({ name: 'test.spt', text }).files.get('test.spt')!
  const kernel = file.decls.findLast((d): d is Ast.Kernel => d.kind === 'kernel')!
  const inputs = new Set(['in', 'inout'])
  const buffers = kernel.members.filter((m) => m.kind === 'buffer')
  const axes = kernel.members.filter((m) => m.kind === 'axis')
  const params = kernel.params.map((p) => p.name.name)
  const names = new Set([...params, ...[...buffers, ...axes].map((m) => m.name.name)])
  if ([...names].some((n) => WORDS.has(n))) return null
  const callee = mapSyntax(kernel, (node) => {
    const { name } = node
    return typeof name === 'string' && names.has(name) ? { ...node, name: `${name}_q` } : undefined
  })
  const [results, args] = [
    buffers.filter((b) => b.role.name === 'out'),
    buffers.filter((b) => inputs.has(b.role.name)),
  ]
  const id = (name: string): Ast.Ident => ({ name, span: kernel.span })
  const argument = (name: string, to: string | null): Ast.NamedArg => ({
    name: to === null ? null : id(to),
    value: { kind: 'name', name, span: kernel.span },
    span: kernel.span,
  })
  const call: Ast.KernelCall = {
    kind: 'kernel_call',
    results: results.map((b) => b.name),
    kernel: id(of?.name ?? 'callee_q'),
    types: [],
    args: [
      ...args.map((b) => argument(b.name.name, null)),
      ...params.map((p) => argument(p, of ? p : `${p}_q`)),
    ],
    label: null,
    span: kernel.span,
  }
  const caller = { ...kernel, members: [...axes, ...buffers.filter((b) => b.role.name !== 'local'), call] }
  if (of) return `${of.program}\n${print({ ...file, decls: [caller] })}`
  const others = file.decls.filter((d) => d !== kernel && d.kind !== 'schedule')
  return print({ ...file, decls: [...others, { ...callee, name: id('callee_q') }, caller] })
}
