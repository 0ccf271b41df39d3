# Static binaries on an empty image: no shell, no package manager, no root.
#
#   docker build -t routemaster .
#   docker run -p 17890:17890 -e ROUTEMASTER_ROOT_KEY=... \
#     -e ROUTEMASTER_REDIS_URL=redis://... routemaster
#   docker run -e ROUTEMASTER_REDIS_URL=redis://... routemaster /worker
#
# The first container speaks plain HTTP, and expects a proxy in front of it that speaks TLS and sets
# X-Forwarded-Proto. Without one, it redirects everything but /health to https, where nothing
# listens. To try it without a proxy, add -e FORCE_SSL=NO, or mount a certificate and set
# ROUTEMASTER_TLS_CERT and ROUTEMASTER_TLS_KEY. examples/compose.yaml starts all of it.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY client/go.mod client/go.sum client/
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X routemaster/internal/app.version=${VERSION}" -o /out/ ./cmd/...

FROM scratch
# The certificates that the subscribers' own are verified against.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/web /out/worker /out/rtm /
USER 65532:65532
EXPOSE 17890
# Where worker is asked for its health. Containers that share a network (--network host, a pod) each
# need another address.
ENV ROUTEMASTER_METRICS_ADDR=127.0.0.1:9100
# It asks either on ROUTEMASTER_METRICS_ADDR, and web on PORT, too, whether it lives. An unavailable
# Redis makes neither unhealthy: a restart would not help.
HEALTHCHECK --interval=10s --timeout=15s --start-period=30s CMD ["/rtm", "health"]
# Either program stops gracefully on SIGTERM, which is what docker stop sends.
CMD ["/web"]
