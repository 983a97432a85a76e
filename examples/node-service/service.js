// node --import sparsetile/register service.js: multiplies matrices in CSR that clients post as JSON. Clients are not trusted, so the
// matrices are converted and checked (&formats).
import { createServer } from 'node:http'
import spmm from 'sparsetile/kernels/spmm.spt?plan&formats&kernel=spmm&target=cpu'
import { csr, dense } from 'sparsetile/runtime/formats'

const fn = await spmm.build()
const server = createServer(async (request, response) => {
  try {
    let text = ''
    for await (const part of request) text += part
    const { indptr, indices, values, B, n, d } = JSON.parse(text)
    const { C } = await fn({
      A: csr(
        [indptr.length - 1, n],
        Int32Array.from(indptr),
        Int32Array.from(indices),
        Float32Array.from(values),
      ),
      B: dense([n, d], Float32Array.from(B)),
    })
    response.end(JSON.stringify([...C.values]))
  } catch (error) {
    response.writeHead(400).end(error.message)
  }
})
server.listen(Number(process.env.PORT ?? 0), () => console.log(`listening on ${server.address().port}`))
