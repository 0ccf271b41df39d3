package web

import (
	"net/http"
	"time"

	"routemaster/internal/bus"
)

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct{}{})
}

func (s *Server) getPing(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"pong": s.now().UTC().Format(time.RFC3339Nano)})
}

func (s *Server) getReady(w http.ResponseWriter, r *http.Request) {
	s.respondJSON(w, r, struct{}{}, s.store.Ping(r.Context()))
}

func (s *Server) getPulse(w http.ResponseWriter, r *http.Request) {
	s.respond(w, r, s.store.Ping(r.Context()))
}

// scalingDelay is how long /pulse/scaling takes when many jobs are due. Autoscalers observe
// latency.
const scalingDelay = time.Second

func (s *Server) getPulseScaling(w http.ResponseWriter, r *http.Request) {
	due, err := s.store.DueJobs(r.Context(), bus.QueueMain, s.now().Add(s.config.ScalingDeadline))
	if err == nil && due >= s.config.ScalingThreshold {
		select {
		case <-time.After(scalingDelay):
		case <-r.Context().Done():
		}
	}
	s.respond(w, r, err)
}
