# One image for every role: `docker run … flow serve --role=server`.
#
#   docker build -t flow .
#
# The program arrives bundled (dist/flow), so the image has no node_modules at all. Left out on purpose: the binaries of the
# embedded PostgreSQL, some 40 MB that no deployment uses. A server in a container wants FLOW_DATABASE_URL, and says so.

# The digest is that of the index of all platforms. Renew it with the tag: docs/operations.md, "Pinning images".
ARG NODE=22-bookworm-slim@sha256:43ac6c60b8f89723f746e8a92ce91abd5017e627ce1ddfe4238355d3a30b772c

FROM node:${NODE} AS build
WORKDIR /build
# The lock alone decides what this layer is. No script of a package runs: the bundler needs none.
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
# Types are checked by `npm run check`, before anybody builds an image; here the sources are only bundled.
COPY tsconfig.json ./
COPY bin ./bin
COPY src ./src
COPY gui ./gui
RUN node bin/bundle.js && rm dist/flow/*.map && npx vite build gui --logLevel warn

# Debian and no "distroless" base: tasks of kind shell need a shell, tasks of kind python a Python, and both a sandbox.
FROM node:${NODE}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/flow
COPY package.json LICENSE ./
COPY migrations ./migrations
COPY playbooks/playbook.schema.json ./playbooks/
COPY playbooks/api_integration ./playbooks/api_integration
COPY playbooks/doctor ./playbooks/doctor
COPY bin/flow.js ./bin/
COPY --from=build /build/dist/flow ./dist/flow
COPY --from=build /build/dist/page ./dist/page
# /var/lib/flow is the only folder that the program writes, besides /tmp: the rest may be mounted read-only.
RUN ln -s /opt/flow/bin/flow.js /usr/local/bin/flow \
    && install --directory --owner=1000 --group=1000 /var/lib/flow
# In a container, loopback is reachable by nobody. Without tokens the server refuses this address, with words.
ENV NODE_ENV=production FLOW_HOST=0.0.0.0 FLOW_HOME=/var/lib/flow
WORKDIR /var/lib/flow
# By number, so that an orchestrator can see that it is not root.
USER 1000:1000
# Server, gateway, doctor.
EXPOSE 8082 8090 8765
# SIGTERM stops a role in order; a second one stops it at once.
STOPSIGNAL SIGTERM
# Of the server. Other roles replace it (deploy/compose.yaml); Kubernetes does not read it.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.FLOW_SERVER_PORT || 8082}/api/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["flow"]
CMD ["serve"]
