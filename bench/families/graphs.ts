/** Families of graphs: networks of people, papers, streets and points. */
import { permutation as shuffled } from '../../src/run/bind/sources/random-tensors.ts'
import { Edges, type Family, skewed } from './edges.ts'

/** Both ends by weight, ids at random (Chung and Lu, 2002). */
export const powerLaw = (skew: number, degree: number): Family => ({
  description: `power law, skew ${skew}, ${degree} a row, random ids`,
  generate(n, random) {
    const ids = shuffled(n, random)
    const edges = new Edges()
    for (let e = 0; e < (n * degree) / 2; e++) {
      const [a, b] = [ids[skewed(random, n, skew)]!, ids[skewed(random, n, skew)]!]
      edges.add(a, b)
      edges.add(b, a)
    }
    return edges.pattern(n)
  },
})

/** Neighbours on a ring, a share of the edges rewired (Watts and Strogatz, 1998). */
export const smallWorld = (degree: number, rewired: number): Family => ({
  description: `small world, ${degree} neighbours on a ring, ${rewired * 100} % rewired`,
  generate(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; i++)
      for (let k = 1; k <= degree / 2; k++) {
        const j = random.next() < rewired ? random.below(n) : (i + k) % n
        edges.add(i, j)
        edges.add(j, i)
      }
    return edges.pattern(n)
  },
})

/** Skewed degrees within communities of neighbouring ids, a share of the edges between them: social networks. */
export const communities = (members: number, degree: number, within: number): Family => ({
  description: `communities of ${members}, ${degree} a row, ${within * 100} % of them within`,
  generate(n, random) {
    const ids = shuffled(n, random)
    const edges = new Edges()
    for (let e = 0; e < (n * degree) / 2; e++) {
      const a = ids[skewed(random, n, 0.3)]!
      const from = a - (a % members)
      const near = from + skewed(random, Math.min(members, n - from), 0.2)
      const b = random.next() < within ? near : ids[skewed(random, n, 0.3)]!
      edges.add(a, b)
      edges.add(b, a)
    }
    return edges.pattern(n)
  },
})

/** Quarters of quarters of the matrix, by weight (R-MAT: Chakrabarti, Zhan and Faloutsos, 2004): small ids are hubs. */
export const recursive = (degree: number): Family => ({
  description: `R-MAT with the weights of Graph500, ${degree} a row`,
  generate(n, random) {
    const edges = new Edges()
    const levels = Math.ceil(Math.log2(Math.max(2, n)))
    for (let e = 0; e < n * degree; e++) {
      let [i, j] = [0, 0]
      for (let l = 0; l < levels; l++) {
        const x = random.next()
        i = 2 * i + (x >= 0.76 ? 1 : 0)
        j = 2 * j + ((x >= 0.57 && x < 0.76) || x >= 0.95 ? 1 : 0)
      }
      if (i < n && j < n) edges.add(i, j)
    }
    return edges.pattern(n)
  },
})

/** Points of a square, numbered by strips of it, with those around them (a random geometric graph): unstructured meshes. */
export const geometric = (degree: number): Family => ({
  description: `points of a square with those around, ${degree} a row`,
  generate(n, random) {
    const side = Math.max(1, Math.floor(Math.sqrt((Math.PI * n) / degree)))
    const cells = Array.from({ length: side * side }, (): { x: number; y: number; id: number }[] => [])
    const cellOf = (x: number, y: number): number => Math.floor(x * side) * side + Math.floor(y * side)
    for (let i = 0; i < n; i++) {
      const [x, y] = [random.next(), random.next()]
      cells[cellOf(x, y)]!.push({ x, y, id: 0 })
    }
    let next = 0
    for (const cell of cells) for (const p of cell) p.id = next++
    const edges = new Edges()
    for (let u = 0; u < side; u++)
      for (let v = 0; v < side; v++)
        for (const p of cells[u * side + v]!)
          for (let a = Math.max(0, u - 1); a <= Math.min(side - 1, u + 1); a++)
            for (let b = Math.max(0, v - 1); b <= Math.min(side - 1, v + 1); b++)
              for (const q of cells[a * side + b]!)
                if ((p.x - q.x) ** 2 + (p.y - q.y) ** 2 <= side ** -2) edges.add(p.id, q.id)
    return edges.pattern(n)
  },
})

/** A new node cites old ones, mostly those that others cite (Price, 1976); both ways, ids at random. */
export const citations = (degree: number): Family => ({
  description: `citations, ${degree} by each node, of what is cited`,
  generate(n, random) {
    const ids = shuffled(n, random)
    const edges = new Edges()
    const cited: number[] = [0]
    for (let i = 1; i < n; i++) {
      const own = random.below(2 * degree + 1)
      for (let k = 0; k < own; k++) {
        const j = random.next() < 0.6 ? cited[random.below(cited.length)]! : random.below(i)
        cited.push(j)
        edges.add(ids[i]!, ids[j]!)
        edges.add(ids[j]!, ids[i]!)
      }
    }
    return edges.pattern(n)
  },
})

/** A grid of crossings with some streets missing, numbered in strips as surveys are. */
export const road: Family = {
  description: 'road network: a grid with a fifth of the streets missing',
  generate(n, random) {
    const side = Math.max(2, Math.round(Math.sqrt(n)))
    const edges = new Edges()
    const street = (a: number, b: number): void => {
      if (random.next() < 0.2) return
      edges.add(a, b)
      edges.add(b, a)
    }
    for (let x = 0; x < side; x++)
      for (let y = 0; y < side; y++) {
        if (y + 1 < side) street(x * side + y, x * side + y + 1)
        if (x + 1 < side) street(x * side + y, (x + 1) * side + y)
      }
    return edges.pattern(side * side)
  },
}

/** A few rows have a tenth of all columns each, the others hardly any. */
export const hubs = (count: number, degree: number): Family => ({
  description: `${count} hubs with a tenth of all columns, ${degree} in other rows`,
  generate(n, random) {
    const edges = new Edges()
    const ids = shuffled(n, random)
    for (let h = 0; h < Math.min(n, count); h++)
      for (let k = 0; k < n / 10; k++) {
        const j = random.below(n)
        edges.add(ids[h]!, j)
        edges.add(j, ids[h]!)
      }
    for (let i = 0; i < n; i++) for (let k = 0; k < degree; k++) edges.add(i, random.below(n))
    return edges.pattern(n)
  },
})
