/** The smallest product, replayed from a graph, one run after the other: what launching and the tail cost. */
import { best } from '../case.ts'
import type { Session } from '../session.ts'
import { three } from '../statistics.ts'
import { overWidths } from './matrices.ts'
import { products } from './products.ts'

const WIDTH = 32

export async function coraGraph(s: Session): Promise<void> {
  const us = (x: number | null | undefined): string =>
    x === null || x === undefined ? '-' : `${three(x)} µs`
  let there = false
  for await (const A of s.matrices('cora')) {
    there = true
    for (const result of await overWidths(s, 'cora-graph', products, A, [WIDTH])) {
      const [mine, peer] = [best(result, 'ours'), best(result, 'peer')]
      s.say(
        `from a graph, back to back: ours ${us(mine?.times.backToBack)}, cuSPARSE ${us(peer?.times.backToBack)}; between two events: ${us(mine?.times.event)}, ${us(peer?.times.event)}`,
      )
    }
  }
  if (!there && !s.late()) s.say('cora is not among the data')
}
