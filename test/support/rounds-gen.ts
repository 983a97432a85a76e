/** Random programs with rounds: iterations of a generated kernel run once or several times. */
import type * as Ast from '../../src/ast/nodes/nodes.ts'
import { walkSyntax } from '../../src/ast/nodes/walk.ts'
import { print } from '../../src/ast/print/print.ts'
import { programOf } from '../../src/schedule/steps/language.ts'
import type { Choices } from './choices.ts'
import { generate, type Sample } from './program-gen.ts'

interface WithRounds {
  readonly sample: Sample
  /** The same kernel with the statements of each round written out; null if rounds have temporaries of their own. */
  readonly unrolled: string | null
  /** The number of rounds that run. */
  readonly count: number
}

const accessed = (part: unknown): ReadonlySet<string> => {
  const names = new Set<string>()
  walkSyntax(part, (node) => {
    if (node.kind === 'access') names.add((node as Ast.Access).buffer.name)
  })
  return names
}

export const inRounds = (c: Choices): Sample => withRounds(c).sample

export function withRounds(c: Choices): WithRounds {
  const sample = generate(c)
  const file = programOf({ name: 'test.spt', text: sample.text }).files.get('test.spt')!
  const kernel = file.decls.findLast((d): d is Ast.Kernel => d.kind === 'kernel')!
  const [statements, declarations] = [
    kernel.members.filter((m) => m.kind === 'iterate'),
    kernel.members.filter((m) => m.kind !== 'iterate'),
  ]
  const from = c.below(statements.length)
  const to = from + 1 + c.below(statements.length - from)
  const repeated = statements.slice(from, to)
  const rest = [...statements.slice(0, from), ...statements.slice(to)]
  const used = accessed(rest)
  const own = declarations.filter(
    (m) => m.kind === 'buffer' && m.role.name === 'local' && !used.has(m.name.name) && c.chance(50),
  )
  const count = c.below(3)
  const [isConditional, isCounted] = [c.chance(35), c.chance(40)]
  const text = (members: readonly Ast.Member[]): string =>
    print({ ...file, decls: [{ ...kernel, members }] })
      .split('\n')
      .slice(1, -2)
      .join('\n')
  const outer = declarations.filter((m) => !own.includes(m))
  const head = print({ ...file, decls: file.decls.filter((d) => d !== kernel && d.kind !== 'schedule') })
  const params = kernel.params.map((p) => `${p.name.name}: ${p.type.name}`).join(', ')
  const program = (body: readonly string[]): string =>
    `${head}\nkernel ${kernel.name.name}(${params}) {\n${body.join('\n')}\n}\n`
  const condition = isConditional ? ' while (left_q[] > 0)' : ''
  const [before, after] = [statements.slice(0, from), statements.slice(to)]
  const rounds = [
    text(outer),
    `axis round_q = dense_fixed(${isConditional ? count + 2 : count})`,
    isConditional ? `buffer left_q: i32[] local iterate begin_q [] { left_q[] = ${count} }` : '',
    isCounted ? 'buffer T_q: i32[round_q] out' : '',
    text(before),
    `iterate rounds_q [round_q] as T${condition} {`,
    text(own),
    isCounted ? 'T_q[round_q] = T_q[round_q - 1] + round_q + 1' : '',
    text(repeated),
    isConditional ? 'left_q[] = left_q[] - 1' : '',
    '}',
    text(after),
  ]
  const copies = Array.from({ length: count }, (_, k) =>
    repeated.map((s) => ({ ...s, name: { ...s.name, name: `${s.name.name}_round_${k}` } })),
  )
  return {
    sample: { ...sample, text: program(rounds) },
    count,
    unrolled: own.length > 0 ? null : program([text(outer), text(before), ...copies.map(text), text(after)]),
  }
}
