/**
 * Versions of buffers (static single assignment). A call that assigns a buffer with a value makes a new version of the
 * buffer, so that the operands of earlier statements keep their values.
 */

import type * as Ast from '../../ast/nodes/nodes.ts'
import { copyIteration } from '../../ast/nodes/syntax-builders.ts'
import { mapSyntax, walkSyntax } from '../../ast/nodes/walk.ts'
import { getOrAdd } from '../../ir/memoize.ts'

export class BufferVersions {
  readonly #versions = new Map<string, string[]>()
  /** Buffers and versions with a value: inputs, and targets of statements. */
  readonly #written = new Set<string>()

  /** The latest version of a buffer. */
  latest(name: string): string {
    return this.#versions.get(name)?.at(-1) ?? name
  }

  hasValue(name: string): boolean {
    return this.#written.has(name)
  }

  write(name: string): void {
    this.#written.add(name)
  }

  /** Adds a version, whose name `unused` makes from `NAME_2`, `NAME_3`, …. */
  add(name: string, unused: (name: string) => string): string {
    const versions = getOrAdd(this.#versions, name, () => [])
    const version = unused(`${name}_${versions.length + 2}`)
    versions.push(version)
    return version
  }

  /** The latest versions of all buffers that have several. */
  snapshot(): ReadonlyMap<string, string> {
    return new Map([...this.#versions.keys()].map((name) => [name, this.latest(name)]))
  }

  /** Makes the versions of a snapshot the latest. Returns them with the later versions whose values they receive. */
  restore(before: ReadonlyMap<string, string>): readonly (readonly [string, string])[] {
    return [...this.snapshot()].flatMap(([name, last]) => {
      const first = before.get(name) ?? name
      if (first === last) return []
      this.#versions.get(name)!.push(first)
      return [[first, last] as const]
    })
  }

  /** A statement over the latest versions, whose targets have values from now on. */
  statement(s: Ast.Iterate): Ast.Iterate {
    const own = this.#versions.size === 0 ? s : withBuffers(s, (name) => this.latest(name))
    walkSyntax(own, (node, key) => {
      if (node.kind === 'access' && key === 'targets') this.write((node as Ast.Access).buffer.name)
    })
    return own
  }

  /**
   * The members after the last statement: the last version of a buffer and the buffer exchange names. An `inout` buffer
   * is the first version, and receives a copy of the last version. `nameOf` returns the name of a buffer after that.
   */
  settle(
    members: readonly Ast.Member[],
    unused: (name: string) => string,
  ): { readonly members: readonly Ast.Member[]; readonly nameOf: (name: string) => string } {
    const buffers = new Map(members.flatMap((m) => (m.kind === 'buffer' ? [[m.name.name, m]] : [])))
    const names = new Map<string, string>()
    const copies: Ast.Member[] = []
    for (const name of this.#versions.keys()) {
      const [buffer, last] = [buffers.get(name)!, this.latest(name)]
      if (last === name) continue
      if (buffer.role.name === 'inout') copies.push(copyIteration(unused(`${name}_result`), buffer, last))
      else names.set(name, last).set(last, name)
    }
    const nameOf = (name: string): string => names.get(name) ?? name
    const named = (m: Ast.Member): Ast.Member => {
      if (names.size === 0) return m
      const own = withBuffers(m, nameOf)
      return own.kind === 'buffer' ? { ...own, role: buffers.get(own.name.name)!.role } : own
    }
    return { members: [...members.map(named), ...copies], nameOf }
  }
}

function withBuffers<T extends Ast.Member>(m: T, nameOf: (name: string) => string): T {
  const renamed = (id: Ast.Ident): Ast.Ident => ({ ...id, name: nameOf(id.name) })
  if (m.kind === 'buffer') return { ...m, name: renamed(m.name) }
  if (m.kind !== 'iterate') return m
  const replace = (node: object): unknown => {
    const access = node as Ast.Access
    if (access.kind !== 'access') return undefined
    return { ...access, buffer: renamed(access.buffer), index: mapSyntax(access.index, replace) }
  }
  return mapSyntax(m, replace)
}
